//! Who descends from whom: the particle tree without its dead branches.
//!
//! The tree is a *trunk*, the generations that all living particles share, and a *bush* of single nodes
//! beyond it (Jacob, Murray, Rubenthaler 2015, doi 10.1007/s11222-013-9445-x: about N log N of them).
//! A node keeps its slot for life, so what is stored by slot is never copied at resampling; it leaves its
//! slot when it dies or joins the trunk.

/// The slot of a bush node.
pub(crate) type Slot = usize;

#[derive(Clone, Debug)]
struct Node {
    /// The parent, or none if that is the end of the trunk (or there is none: generation 0).
    parent: Option<Slot>,
    generation: usize,
    n_children: usize,
}

/// A node that was just born.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    /// Index of the particle in its generation.
    pub particle: usize,
    /// Its slot.
    pub slot: Slot,
    /// The slot that its parent has or had (also if the parent joined the trunk at this step).
    pub parent: Option<Slot>,
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Genealogy {
    nodes: Vec<Node>,
    free: Vec<Slot>,
    /// Slots of the newest generation, by particle.
    current: Vec<Slot>,
    /// Particles of the newest generation, relatives side by side.
    order: Vec<usize>,
    /// Generations in the trunk.
    trunk: usize,
    /// Living nodes of each generation beyond the trunk, oldest first.
    levels: std::collections::VecDeque<Vec<Slot>>,
    /// Generations that are remembered at one time, if older ones do not matter: then there is no tree.
    memory: Option<usize>,
    generation: usize,
    /// Room for the parents of a generation.
    parents: Vec<Option<Slot>>,
}

impl Genealogy {
    /// A tree, or with `memory` only the last so many generations, for priors that look no further back.
    pub(crate) fn new(memory: Option<usize>) -> Self {
        Self { memory, ..Self::default() }
    }

    /// Starts with generation 0.
    pub(crate) fn start(&mut self, n_particles: usize, births: &mut Vec<Birth>) {
        *self = Self::new(self.memory);
        self.order = (0..n_particles).collect();
        self.parents.resize(n_particles, None);
        self.bear(births);
    }

    /// Generations in the trunk.
    pub(crate) fn trunk(&self) -> usize {
        self.trunk
    }

    /// Slots of the newest generation, by particle.
    pub(crate) fn current(&self) -> &[Slot] {
        &self.current
    }

    pub(crate) fn parent(&self, slot: Slot) -> Option<Slot> {
        self.nodes[slot].parent
    }

    /// Living nodes of each generation beyond the trunk, oldest first.
    pub(crate) fn levels(&self) -> impl Iterator<Item = &[Slot]> {
        self.levels.iter().map(Vec::as_slice)
    }

    /// Makes `chain` the bush ancestors of a node, oldest first, its parent last, from those of a relative.
    /// Returns how many they have in common.
    pub(crate) fn chain(&self, slot: Slot, chain: &mut Vec<Slot>) -> usize {
        let length = self.nodes[slot].generation - self.trunk;
        let known = chain.len().min(length);
        chain.resize(length, Slot::MAX);
        let mut next = self.nodes[slot].parent;
        for link in (0..length).rev() {
            let Some(ancestor) = next else { return 0 };
            if link < known && chain[link] == ancestor {
                return link + 1;
            }
            chain[link] = ancestor;
            next = self.nodes[ancestor].parent;
        }
        0
    }

    /// Slots of a generation where only the last few are remembered.
    fn rotating_slots(&self, memory: usize, n: usize) -> impl Iterator<Item = Slot> + use<> {
        let first = self.generation % memory * n;
        first..first + n
    }

    /// The children of `self.parents`.
    fn bear(&mut self, births: &mut Vec<Birth>) {
        births.clear();
        let n = self.parents.len();
        if let Some(memory) = self.memory {
            let slots = self.rotating_slots(memory, n);
            self.generation += 1;
            self.current.clear();
            self.current.extend(slots);
            let children = self.current.iter().zip(&self.parents).enumerate();
            births.extend(children.map(|(particle, (&slot, &parent))| Birth { particle, slot, parent }));
            return;
        }
        let parents = std::mem::take(&mut self.parents);
        let generation = self.trunk + self.levels.len();
        let mut level = Vec::with_capacity(n);
        self.current.clear();
        self.current.resize(n, Slot::MAX);
        for i in 0..self.order.len() {
            let particle = self.order[i];
            let node = Node { parent: parents[particle], generation, n_children: 0 };
            let slot = match self.free.pop() {
                Some(slot) => {
                    self.nodes[slot] = node;
                    slot
                }
                None => {
                    self.nodes.push(node);
                    self.nodes.len() - 1
                }
            };
            if let Some(parent) = parents[particle] {
                self.nodes[parent].n_children += 1;
            }
            self.current[particle] = slot;
            level.push(slot);
            births.push(Birth { particle, slot, parent: parents[particle] });
        }
        self.levels.push_back(level);
        self.parents = parents;
    }

    /// Adds the next generation: particle i descends from particle `ancestors[i]`. The births come with
    /// relatives side by side.
    pub(crate) fn branch(&mut self, ancestors: &[usize], births: &mut Vec<Birth>) {
        self.parents.clear();
        self.parents.extend(ancestors.iter().map(|&a| Some(self.current[a])));
        if self.memory.is_some() {
            return self.bear(births);
        }
        let mut rank = vec![0; self.current.len()];
        for (position, &particle) in self.order.iter().enumerate() {
            rank[particle] = position;
        }
        self.order = (0..ancestors.len()).collect();
        self.order.sort_by_key(|&particle| rank[ancestors[particle]]);
        self.bear(births);
    }

    /// Adds one child to every particle for the time being; [`Self::retreat`] takes them away again.
    pub(crate) fn venture(&mut self, births: &mut Vec<Birth>) {
        self.parents.clear();
        self.parents.extend(self.current.iter().map(|&slot| Some(slot)));
        self.bear(births);
    }

    /// Removes the newest generation.
    pub(crate) fn retreat(&mut self) {
        if let Some(memory) = self.memory {
            self.generation -= 2;
            let slots = self.rotating_slots(memory, self.current.len());
            self.generation += 1;
            self.current.clear();
            self.current.extend(slots);
            return;
        }
        if let Some(level) = self.levels.pop_back() {
            let parents: Vec<Slot> =
                self.current.iter().filter_map(|&slot| self.nodes[slot].parent).collect();
            for &parent in &parents {
                self.nodes[parent].n_children -= 1;
            }
            self.current = parents;
            self.free.extend(level);
        }
    }

    /// Frees the nodes without living descendants.
    pub(crate) fn prune(&mut self) {
        for level in (0..self.levels.len().saturating_sub(1)).rev() {
            let (nodes, free) = (&mut self.nodes, &mut self.free);
            let before = self.levels[level].len();
            self.levels[level].retain(|&slot| {
                let alive = nodes[slot].n_children > 0;
                if !alive {
                    if let Some(parent) = nodes[slot].parent {
                        nodes[parent].n_children -= 1;
                    }
                    free.push(slot);
                }
                alive
            });
            if self.levels[level].len() == before {
                // Nothing died here, so nothing died further back.
                break;
            }
        }
    }

    /// Moves the next node that all particles share into the trunk, if there is one.
    pub(crate) fn promote(&mut self) -> Option<Slot> {
        if self.levels.len() < 2 || self.levels[0].len() != 1 {
            return None;
        }
        let slot = self.levels.pop_front()?[0];
        for &child in &self.levels[0] {
            self.nodes[child].parent = None;
        }
        self.trunk += 1;
        self.free.push(slot);
        Some(slot)
    }
}
