"""The experiment bench/two-sites: real training jobs that share one slow link, with and without Weir."""
