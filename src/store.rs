//! Opens, lists and creates files, durable before they are named.
