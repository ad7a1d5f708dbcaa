// Non-projective trees by their inequalities, for points so flat that few of them bind.
//
// The hull of non-projective trees is the set of arcs with one head a word and at least 1 coming into every set of
// words (Edmonds 1967), exactly 1 from the root if it has one child. The nearest point with one head a word and enough
// from the root is a matter of sorting; when it meets the other inequalities it is the projection onto the hull. They
// hold if and only if 1 can flow from the root to every word: no search, and no trees.
#pragma once

namespace spigot {

// The projection of a point (length + 1, length + 1), -inf where there is no arc, onto the hull of non-projective trees,
// if it is that of the relaxation. False if it is not, or if so few heads are near the best that a search is quick.
bool project_relaxed_trees(const double* point, int length, bool single_root, double* mu);

}  // namespace spigot
