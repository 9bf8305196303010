//! Options of the command line and the keys they set.

use toml::Value;
use toml::de::DeValue;

use super::error::ConfigError;
use super::tree::RunFile;

/// How the text after an option is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As it is.
    Text,
    /// Names between commas.
    Names,
    /// A number, list or table as in the file; anything else is a text.
    Value,
    /// `first:last`.
    Range,
}

/// An option, the key it sets, and what it is for.
#[derive(Clone, Copy, Debug)]
pub struct OptionKey {
    /// Such as `--y`.
    pub option: &'static str,
    /// Such as `data.y`.
    pub key: &'static str,
    /// One line of help.
    pub help: &'static str,
    form: Form,
}

const fn option(option: &'static str, key: &'static str, form: Form, help: &'static str) -> OptionKey {
    OptionKey { option, key, help, form }
}

/// Options that set a key of the run file.
pub const OPTIONS: [OptionKey; 27] = [
    option("--y", "data.y", Form::Names, "Output columns, comma separated"),
    option("--u", "data.u", Form::Names, "Input columns, comma separated"),
    option("--time", "data.time", Form::Text, "Column of times (numbers or dates) with equal steps"),
    option("--dt", "data.dt", Form::Value, "Sampling time, if there is no column of times"),
    option("--sequence", "data.sequence", Form::Text, "Column that labels independent sequences"),
    option("--rows", "data.rows", Form::Range, "First and last row to use, as first:last, from 1"),
    option("--every", "data.every", Form::Value, "Use every k-th row"),
    option("--input-lags", "data.input_lags", Form::Value, "Number of past input values used as regressors"),
    option("--delay", "data.delay", Form::Value, "Rows from an input to the first output it acts on"),
    option("--states", "model.states", Form::Value, "Number of states"),
    option("--lags", "model.lags", Form::Value, "Number of past output values used as states"),
    option("--kernel", "model.kernel", Form::Value, "Covariance function, such as \"matern32(x) + linear\""),
    option("--mean", "model.mean", Form::Value, "Mean function: identity, zero or a formula"),
    option("--sensor", "model.sensor", Form::Value, "Family of the sensor, such as poisson"),
    option("--dynamics", "model.dynamics", Form::Value, "exact, or a finite basis such as \"hilbert(40)\""),
    option("--draws", "sampler.draws", Form::Value, "Draws of each chain after warm-up"),
    option("--ess", "sampler.ess", Form::Value, "Effective sample size at which the run is complete"),
    option("--budget", "sampler.budget", Form::Text, "Time limit, such as 10m"),
    option("--tune", "sampler.tune", Form::Value, "Warm-up sweeps of each chain"),
    option("--chains", "sampler.chains", Form::Value, "Number of chains"),
    option("--particles", "sampler.particles", Form::Value, "Number of particles"),
    option("--point", "sampler.point", Form::Value, "A point estimate in place of draws from the posterior"),
    option("--seed", "sampler.seed", Form::Value, "Seed of all random numbers"),
    option("--threads", "sampler.threads", Form::Value, "Number of threads; by default one for each core"),
    option("--proposal", "sampler.proposal", Form::Text, "auto, bootstrap, adapted or shortlist"),
    option("--resampling", "sampler.resampling", Form::Text, "systematic or multinomial"),
    option(
        "--max-memory-mb",
        "sampler.max_memory_mb",
        Form::Value,
        "Memory limit in MB; larger runs are refused",
    ),
];

impl RunFile {
    /// Overrides one value by an option of [`OPTIONS`], such as `("--draws", "200")`.
    pub fn option(&mut self, option: &str, text: &str) -> Result<(), ConfigError> {
        let written = format!("{option} {}", crate::wording::one_line(text));
        let Some(known) = OPTIONS.iter().find(|known| known.option == option) else {
            let names = OPTIONS.iter().map(|known| known.option);
            let suggestion = gpssm::formula::did_you_mean(option, names);
            let origin = super::Origin::Option(written.into());
            return Err(self.error(String::new(), origin, format!("there is no such option{suggestion}")));
        };
        let value = match known.form {
            Form::Text => Value::String(text.to_owned()),
            Form::Names => {
                Value::Array(text.split(',').map(|name| Value::String(name.trim().to_owned())).collect())
            }
            Form::Range => {
                match text.split_once(':').map(|(from, to)| (from.trim().parse(), to.trim().parse())) {
                    Some((Ok(from), Ok(to))) => Value::Array(vec![Value::Integer(from), Value::Integer(to)]),
                    _ => Value::String(text.to_owned()),
                }
            }
            Form::Value if DeValue::parse(text).is_ok() => {
                // Only numbers, lists and tables: names need no quotes here.
                let table: Result<toml::Table, _> = format!("v = {text}").parse();
                let value = table.ok().and_then(|mut table| table.remove("v"));
                value.unwrap_or_else(|| Value::String(text.to_owned()))
            }
            Form::Value => Value::String(text.to_owned()),
        };
        // What is typed replaces what the file says of that which it excludes.
        let replaced: &[&str] = match option {
            "--ess" => &["draws"],
            "--point" => &["draws", "ess", "chains"],
            _ => &[],
        };
        replaced.iter().for_each(|key| self.forget_in_file("sampler", key));
        self.put(known.key, value, &written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_set_keys() {
        let mut file = RunFile::new();
        for (option, text) in [
            ("--y", "a, b"),
            ("--rows", "2:10"),
            ("--dt", "0.5"),
            ("--kernel", "se(x)"),
            ("--sensor", "{ mean = 'abs(x1)' }"),
            ("--draws", "1e3"),
        ] {
            file.option(option, text).unwrap();
        }
        let config = file.config().unwrap();
        assert_eq!(config.data.y, ["a", "b"]);
        assert_eq!(config.data.rows, Some((2, 10)));
        assert_eq!(config.data.dt, Some(0.5));
        assert_eq!(config.sampler.draws, Some(1000));
        let mut file = RunFile::parse("[sampler]\ndraws = 100", "m.toml").unwrap();
        file.option("--ess", "200").unwrap();
        file.option("--budget", "90s").unwrap();
        let sampler = file.config().unwrap().sampler;
        assert_eq!((sampler.draws, sampler.ess), (None, 200));
        assert_eq!(sampler.budget, gpssm::Budget::Time(std::time::Duration::from_secs(90)));
        assert!(config.model.kernel.is_some() && config.model.sensor.is_some());
    }

    #[test]
    fn mistakes_name_the_option() {
        for (option, text, expected) in [
            ("--drwas", "3", "--drwas 3: there is no such option; did you mean '--draws'?"),
            ("--rows", "3", "--rows 3: data.rows: expected a list of 2 values, found the text \"3\""),
            ("--dt", "x", "--dt x: data.dt: expected a number, found the text \"x\""),
            (
                "--budget",
                "soon",
                "--budget soon: sampler.budget: 'soon' is no time; write 90s, 10m, 1h30m or none",
            ),
            (
                "--draws",
                "-3",
                "--draws -3: sampler.draws: expected a whole number, zero or more, found the number -3",
            ),
            (
                "--states",
                "2.5",
                "--states 2.5: model.states: expected a whole number, zero or more, or \"auto\", found the number 2.5",
            ),
        ] {
            let mut file = RunFile::new();
            let error = file.option(option, text).and_then(|()| file.config().map(|_| ())).unwrap_err();
            assert_eq!(error.to_string(), expected);
        }
    }
}
