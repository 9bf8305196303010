//! The encoding of ONNX files (protocol buffers): tags, lengths, numbers.

/// Types of tensors.
pub(super) const FLOAT: u64 = 1;
pub(super) const INT64: u64 = 7;
pub(super) const BOOL: u64 = 9;
pub(super) const DOUBLE: u64 = 11;

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    fn variable(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    pub(super) fn number(&mut self, field: u64, value: u64) {
        self.variable(field << 3);
        self.variable(value);
    }

    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) {
        self.variable(field << 3 | 2);
        self.variable(value.len() as u64);
        self.0.extend(value);
    }

    pub(super) fn text(&mut self, field: u64, value: &str) {
        self.bytes(field, value.as_bytes());
    }

    pub(super) fn message(&mut self, field: u64, value: &Self) {
        self.bytes(field, &value.0);
    }
}

/// A named constant.
pub(super) fn tensor(name: &str, dims: &[usize], kind: u64, bytes: Vec<u8>) -> Message {
    let mut found = Message::default();
    dims.iter().for_each(|dim| found.number(1, *dim as u64));
    found.number(2, kind);
    found.text(8, name);
    found.bytes(9, &bytes);
    found
}

/// A 64-bit input or output of (batch, n) numbers.
pub(super) fn value_info(name: &str, n: usize, about: &str) -> Message {
    let (mut batch, mut columns) = (Message::default(), Message::default());
    batch.text(2, "batch");
    columns.number(1, n as u64);
    let mut shape = Message::default();
    shape.message(1, &batch);
    shape.message(1, &columns);
    let mut tensor = Message::default();
    tensor.number(1, DOUBLE);
    tensor.message(2, &shape);
    let mut kind = Message::default();
    kind.message(1, &tensor);
    let mut found = Message::default();
    found.text(1, name);
    found.message(2, &kind);
    found.text(3, about);
    found
}
