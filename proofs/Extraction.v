(** The two checkers as programs. Whole numbers become those of Zarith. *)

From Coq Require Import ExtrOcamlBasic ExtrOcamlZBigInt.
From Surefoot Require Import Checker Certificate.

Extraction "build/checker.ml" check check_guard unit.
