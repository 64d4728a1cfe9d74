"""What PyTorch published, in committed files of our own form; read by both sides. Light."""
