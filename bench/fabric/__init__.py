"""The emulated network of the experiments: namespaces, links, queues and a WAN."""
