// Ends its process while it is loaded.
// load: process.exit(4)

process.exit(4);
