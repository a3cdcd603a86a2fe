"""Forms: how a model is made from noisy sums, as steps name it and as people read it."""

from __future__ import annotations

from enum import StrEnum


class ModelForm(StrEnum):
    """The form of a model.

    >>> ModelForm.NAIVE_BAYES, ModelForm.NAIVE_BAYES.words
    (<ModelForm.NAIVE_BAYES: 'naive-bayes'>, 'naive Bayes')
    """

    NAIVE_BAYES = "naive-bayes"
    GRADIENT = "gradient"
    ADDITIVE = "additive"
    ADDITIVE_SUMS = "additive-sums"
    SAMPLED_ADDITIVE = "sampled-additive"
    LEAST_SQUARES = "least-squares"
    DECISION_TREES = "decision-trees"
    RANDOM_TREES = "random-trees"
    REGRESSION_TREES = "regression-trees"
    CENTERS = "centers"
    COMPONENTS = "components"
    BEST_OF_SEVERAL = "best-of-several"

    @property
    def words(self) -> str:
        """The form, for people."""
        return _WORDS[self]


_WORDS = {
    ModelForm.NAIVE_BAYES: "naive Bayes",
    ModelForm.GRADIENT: "noisy gradient descent",
    ModelForm.ADDITIVE: "additive, from naive Bayes by noisy gradients",
    ModelForm.ADDITIVE_SUMS: "additive, by noisy sums and gradients",
    ModelForm.SAMPLED_ADDITIVE: "additive, by noisy gradients of samples",
    ModelForm.LEAST_SQUARES: "least squares from noisy products",
    ModelForm.DECISION_TREES: "decision trees",
    ModelForm.RANDOM_TREES: "random trees, each from rows of its own",
    ModelForm.REGRESSION_TREES: "regression trees",
    ModelForm.CENTERS: "centers of clusters",
    ModelForm.COMPONENTS: "components by noisy products",
    ModelForm.BEST_OF_SEVERAL: "the best of several by a noisy score",
}
