"""Pages of the site that are made from the code: names of the library, commands of the command line."""
