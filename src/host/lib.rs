pub fn f() -> usize { let _ = ureq::get("http://x/").call(); rustls::crypto::ring::default_provider().cipher_suites.len() }
