//! What a block of memory can be for, and what an argument's name says of it, for want of better.
//!
//! In: names of arguments. Out: an [`Origin`].

use serde::Serialize;

/// What a block of memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Origin {
    /// Weights of the model, and copies of them.
    Parameters,
    /// Moments and other state of the optimizer.
    OptimizerState,
    /// Derivatives with respect to weights.
    Gradients,
    /// Results of layers, forward or backward.
    Activations,
    /// Keys and values of earlier tokens.
    KvCache,
    /// Embedding tables, logits and what the loss makes of them.
    EmbeddingsLogits,
    /// Constants of the program.
    Constants,
    /// Buffers that collectives fill.
    Communication,
    /// None of these for sure.
    Unknown,
}

impl Origin {
    /// The name in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Origin::Parameters => "parameters",
            Origin::OptimizerState => "optimizer_state",
            Origin::Gradients => "gradients",
            Origin::Activations => "activations",
            Origin::KvCache => "kv_cache",
            Origin::EmbeddingsLogits => "embeddings_logits",
            Origin::Constants => "constants",
            Origin::Communication => "communication",
            Origin::Unknown => "unknown",
        }
    }
}

/// Words of an argument's name, in lower case.
pub(crate) fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_alphanumeric() && c != '_')
        .filter(|w| !w.is_empty())
        .map(str::to_ascii_lowercase)
        .collect()
}

/// What an argument's name says, for want of structure. The last key that says something decides:
/// `params['kv']['kernel']` is a weight.
pub(crate) fn by_argument_name(name: &str) -> Option<Origin> {
    let words = words(name);
    let any = |list: &[&str]| words.iter().any(|w| list.contains(&w.as_str()));
    let part = |text: &str| words.iter().any(|w| w.contains(text));
    if any(&[
        "mu",
        "nu",
        "exp_avg",
        "exp_avg_sq",
        "momentum",
        "velocity",
        "ema",
    ]) || part("opt_state")
        || any(&["opt", "optimizer", "adam"])
    {
        return Some(Origin::OptimizerState);
    }
    if any(&["kernel", "bias", "scale"]) {
        return Some(Origin::Parameters);
    }
    let tables = [
        "embed",
        "embedding",
        "embeddings",
        "tok_embed",
        "token_embed",
        "token_embedding",
        "embed_tokens",
        "lm_head",
        "wte",
        "vocab",
        "readout",
    ];
    if any(&tables) {
        return Some(Origin::EmbeddingsLogits);
    }
    if any(&["params", "param", "weights", "weight"]) {
        return Some(Origin::Parameters);
    }
    if part("cache") || any(&["kv", "kv_pages", "past_key_values"]) {
        return Some(Origin::KvCache);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_say_what_they_say_as_whole_words() {
        let cases = [
            ("params['attn']['kv']['kernel']", Some(Origin::Parameters)),
            ("params['patch_embed']['kernel']", Some(Origin::Parameters)),
            ("params['pos_embedding']", Some(Origin::Parameters)),
            ("params['embed']", Some(Origin::EmbeddingsLogits)),
            ("state.params['wte']", Some(Origin::EmbeddingsLogits)),
            (
                "opt_state[0].mu['embed']['kernel']",
                Some(Origin::OptimizerState),
            ),
            ("cache['k']", Some(Origin::KvCache)),
            ("kv_pages", Some(Origin::KvCache)),
            ("state['m']", None),
            ("batch['x']", None),
        ];
        for (name, origin) in cases {
            assert_eq!(by_argument_name(name), origin, "{name}");
        }
    }
}
