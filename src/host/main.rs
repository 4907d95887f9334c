fn main() { println!("{}", nox_mesh_host::f()); }
