"""Training of the demo pair: corpus, tokenizer, target, drafter, report."""
