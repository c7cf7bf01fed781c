#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Models of scikit-learn, LightGBM and XGBoost, exported with the converters' defaults (ZipMap and all), against ONNX Runtime.

    bench/classical.py --json out.json     (pip install skl2onnx onnxmltools lightgbm xgboost scikit-learn onnxruntime)

Trains small models on random data; bench/sweep.py compares them.
"""
import argparse
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType as LightFloat
from skl2onnx import to_onnx
from sklearn import (calibration, cluster, compose, cross_decomposition, decomposition, discriminant_analysis, ensemble, feature_selection, gaussian_process, impute,
                     linear_model, mixture, multiclass, naive_bayes, neighbors, neural_network, pipeline, preprocessing, svm, tree)
from xgboost import XGBClassifier, XGBRegressor

import sweep

random = np.random.default_rng(3)
X = random.standard_normal((300, 8)).astype(np.float32)
TWO = (X[:, 0] + X[:, 1] > 0).astype(np.int64)
THREE = (X[:, 0] > 0.5).astype(np.int64) + (X[:, 1] > 0)
WORDS = np.array(["no", "yes"])[TWO]
REAL = (X @ random.standard_normal(8) + np.sin(X[:, 2])).astype(np.float32)


def classifiers():
    yield from (linear_model.LogisticRegression(), linear_model.LogisticRegressionCV(), linear_model.SGDClassifier(loss="log_loss"), linear_model.RidgeClassifier(),
                linear_model.Perceptron(), linear_model.PassiveAggressiveClassifier(), svm.LinearSVC(), svm.SVC(), svm.SVC(kernel="linear"),
                svm.SVC(probability=True), svm.NuSVC(), tree.DecisionTreeClassifier(), tree.ExtraTreeClassifier(), ensemble.RandomForestClassifier(20),
                ensemble.ExtraTreesClassifier(20), ensemble.GradientBoostingClassifier(n_estimators=20), ensemble.AdaBoostClassifier(n_estimators=10),
                ensemble.BaggingClassifier(n_estimators=5), ensemble.HistGradientBoostingClassifier(max_iter=20), naive_bayes.GaussianNB(), naive_bayes.BernoulliNB(),
                neighbors.KNeighborsClassifier(), neural_network.MLPClassifier(max_iter=50), discriminant_analysis.LinearDiscriminantAnalysis(),
                discriminant_analysis.QuadraticDiscriminantAnalysis(), multiclass.OneVsRestClassifier(linear_model.LogisticRegression()),
                calibration.CalibratedClassifierCV(svm.LinearSVC()), gaussian_process.GaussianProcessClassifier(),
                ensemble.VotingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier())], voting="soft"),
                ensemble.StackingClassifier([("a", linear_model.LogisticRegression()), ("b", tree.DecisionTreeClassifier())]),
                pipeline.make_pipeline(preprocessing.StandardScaler(), decomposition.PCA(4), linear_model.LogisticRegression()))


def regressors():
    yield from (linear_model.LinearRegression(), linear_model.Ridge(), linear_model.Lasso(), linear_model.ElasticNet(), linear_model.HuberRegressor(),
                linear_model.BayesianRidge(), linear_model.SGDRegressor(), linear_model.PoissonRegressor(), svm.SVR(), svm.LinearSVR(), svm.NuSVR(),
                tree.DecisionTreeRegressor(), ensemble.RandomForestRegressor(20), ensemble.ExtraTreesRegressor(20),
                ensemble.GradientBoostingRegressor(n_estimators=20), ensemble.AdaBoostRegressor(n_estimators=10), ensemble.BaggingRegressor(n_estimators=5),
                ensemble.HistGradientBoostingRegressor(max_iter=20), neighbors.KNeighborsRegressor(), neural_network.MLPRegressor(max_iter=50),
                cross_decomposition.PLSRegression(), gaussian_process.GaussianProcessRegressor())


def transformers():
    yield from (preprocessing.StandardScaler(), preprocessing.MinMaxScaler(), preprocessing.MaxAbsScaler(), preprocessing.RobustScaler(), preprocessing.Normalizer(),
                preprocessing.Binarizer(), preprocessing.PolynomialFeatures(), preprocessing.KBinsDiscretizer(encode="onehot-dense"), preprocessing.PowerTransformer(),
                preprocessing.QuantileTransformer(n_quantiles=50), decomposition.PCA(3), decomposition.TruncatedSVD(3), cluster.KMeans(3),
                cluster.MiniBatchKMeans(3), mixture.GaussianMixture(2), impute.SimpleImputer(), impute.KNNImputer(), feature_selection.VarianceThreshold(),
                ensemble.IsolationForest(n_estimators=10), svm.OneClassSVM(), neighbors.LocalOutlierFactor(novelty=True),
                compose.ColumnTransformer([("a", preprocessing.StandardScaler(), [0, 1]), ("b", preprocessing.MinMaxScaler(), [2, 3])]))


def save(directory, name, make):
    try:
        model = make()
    except Exception as problem:  # the converters' affair
        print(f"{name}: no export: {str(problem)[:100]}", file=sys.stderr)
        return
    (directory / name / "set0").mkdir(parents=True)
    (directory / name / f"{name}.onnx").write_bytes(model.SerializeToString())
    np.save(directory / name / "set0" / f"in.{model.graph.input[0].name}.npy", X[:40])


def export(directory):
    for kind, labels in (("int", THREE), ("two", TWO), ("text", WORDS)):
        for model in classifiers():
            save(directory, f"{type(model).__name__}_{kind}_{len(list(directory.iterdir()))}", lambda: to_onnx(model.fit(X, labels), X[:1]))
    for model in regressors():
        save(directory, f"{type(model).__name__}_{len(list(directory.iterdir()))}", lambda: to_onnx(model.fit(X, REAL if "Poisson" not in str(model) else np.abs(REAL)), X[:1]))
    for model in transformers():
        save(directory, f"{type(model).__name__}_{len(list(directory.iterdir()))}", lambda: to_onnx(model.fit(X), X[:1]))
    light = [("x", LightFloat([None, 8]))]
    for kind, labels in (("int", THREE), ("two", TWO)):
        save(directory, f"LGBMClassifier_{kind}", lambda: convert_lightgbm(LGBMClassifier(n_estimators=10, verbose=-1).fit(X, labels), initial_types=light))
        save(directory, f"XGBClassifier_{kind}", lambda: convert_xgboost(XGBClassifier(n_estimators=10).fit(X, labels), initial_types=light))
    save(directory, "LGBMRegressor", lambda: convert_lightgbm(LGBMRegressor(n_estimators=10, verbose=-1).fit(X, REAL), initial_types=light))
    save(directory, "XGBRegressor", lambda: convert_xgboost(XGBRegressor(n_estimators=10).fit(X, REAL), initial_types=light))


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--json", type=Path, required=True)
    args = p.parse_args()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as directory:
        export(Path(directory))
        return sweep.main(["--no-speed", "--json", str(args.json), directory])


if __name__ == "__main__":
    sys.exit(main())
