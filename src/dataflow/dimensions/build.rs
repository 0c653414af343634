//! Makes [`Values`]: numbers the nodes, collects the links, indexes both.
//!
//! In: a program. Out: [`Values`].

use super::links::collect;
use super::values::{Link, Values};
use crate::hlo::{Program, Shape};

impl Values {
    /// Builds nodes, links and classes. Linear in the module.
    pub fn new(program: &Program<'_>) -> Self {
        let module = &program.module;
        let mut out = Values::default();
        out.dimension_starts.push(0);
        for i in module.ids() {
            out.first.push(out.types.len() as u32);
            let shape = module.shape(i);
            if shape.is_tuple() {
                let mut offset = 0u32;
                let mut elements = Vec::with_capacity(shape.tuple.len());
                for t in &shape.tuple {
                    elements.push(offset);
                    t.for_each_leaf(&mut |_, _| offset += 1);
                }
                elements.push(offset);
                out.elements.insert(i.0, elements);
            }
            shape.for_each_leaf(&mut |_, leaf| out.add_node(leaf));
        }
        out.first.push(out.types.len() as u32);
        collect(program, &mut out);
        out.index_links();
        out.type_class = out.classes(|l| l.same_type);
        out
    }

    fn add_node(&mut self, leaf: &Shape) {
        self.types.push(leaf.element_type.0);
        self.dimensions.extend_from_slice(&leaf.dimensions);
        self.dimension_starts.push(self.dimensions.len() as u32);
    }

    fn index_links(&mut self) {
        let nodes = self.types.len();
        let mut starts = vec![0u32; nodes + 1];
        for l in &self.links {
            starts[l.a as usize + 1] += 1;
            starts[l.b as usize + 1] += 1;
        }
        for i in 1..starts.len() {
            starts[i] += starts[i - 1];
        }
        let mut next = starts.clone();
        self.adjacent = vec![0; 2 * self.links.len()];
        for (i, l) in self.links.iter().enumerate() {
            for end in [l.a, l.b] {
                let at = &mut next[end as usize];
                self.adjacent[*at as usize] = i as u32;
                *at += 1;
            }
        }
        self.adjacent_starts = starts;
    }

    /// Smallest node of each node's class under the links that `joins` picks.
    fn classes(&self, joins: impl Fn(&Link) -> bool) -> Vec<u32> {
        let mut parent: Vec<u32> = (0..self.types.len() as u32).collect();
        fn find(parent: &mut [u32], mut x: u32) -> u32 {
            while parent[x as usize] != x {
                parent[x as usize] = parent[parent[x as usize] as usize];
                x = parent[x as usize];
            }
            x
        }
        for l in self.links.iter().filter(|l| joins(l)) {
            let (a, b) = (find(&mut parent, l.a), find(&mut parent, l.b));
            if a != b {
                parent[a.max(b) as usize] = a.min(b);
            }
        }
        for i in 0..parent.len() as u32 {
            let root = find(&mut parent, i);
            parent[i as usize] = root;
        }
        parent
    }
}
