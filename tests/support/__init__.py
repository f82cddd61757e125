"""What tests share: a scripted OpenAI-compatible server and its rules."""
