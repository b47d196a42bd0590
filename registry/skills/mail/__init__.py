"""Mail: what is written, how it leaves, and how what strangers sent is read within bounds."""
