(** Laws: what can happen next, and with which probability.

    Everything is finite: a law is a list of outcomes with their weights, and a mean is a sum. Rewards and contexts are
    read from files and networks, so there are finitely many of them; no measure theory is needed. *)

From Coq Require Export Reals Lra List.
Export ListNotations.
Open Scope R_scope.

Definition law (X : Type) := list (R * X).

Fixpoint mean {X} (D : law X) (f : X -> R) : R :=
  match D with
  | [] => 0
  | (weight, x) :: D' => weight * f x + mean D' f
  end.

Definition is_law {X} (D : law X) : Prop :=
  Forall (fun outcome => 0 <= fst outcome) D /\ mean D (fun _ => 1) = 1.

(** Comparisons of real numbers, as answers. *)
Definition Rleb (x y : R) : bool := if Rle_dec x y then true else false.
Definition Rltb (x y : R) : bool := if Rlt_dec x y then true else false.

Lemma Rleb_true x y : Rleb x y = true <-> x <= y.
Proof. unfold Rleb. destruct (Rle_dec x y); split; intros; (lra || discriminate || reflexivity). Qed.

Lemma Rltb_true x y : Rltb x y = true <-> x < y.
Proof. unfold Rltb. destruct (Rlt_dec x y); split; intros; (lra || discriminate || reflexivity). Qed.

(** ** Means are linear and monotone. *)

Section Mean.
  Context {X : Type}.
  Implicit Types (D : law X) (f g : X -> R).

  Lemma mean_ext D f g : (forall x, f x = g x) -> mean D f = mean D g.
  Proof. intro H; induction D as [|[q x] D IH]; simpl; [reflexivity | rewrite IH, H; reflexivity]. Qed.

  Lemma mean_plus D f g : mean D (fun x => f x + g x) = mean D f + mean D g.
  Proof. induction D as [|[q x] D IH]; simpl; [ring | rewrite IH; ring]. Qed.

  Lemma mean_scale D c f : mean D (fun x => c * f x) = c * mean D f.
  Proof. induction D as [|[q x] D IH]; simpl; [ring | rewrite IH; ring]. Qed.

  Lemma mean_mono D f g :
    Forall (fun outcome => 0 <= fst outcome) D -> (forall x, f x <= g x) -> mean D f <= mean D g.
  Proof.
    intros HD H; induction D as [|[q x] D IH]; simpl; [lra|].
    inversion HD; subst; simpl in *. apply Rplus_le_compat; [apply Rmult_le_compat_l|]; auto.
  Qed.

  Lemma mean_const D c : is_law D -> mean D (fun _ => c) = c.
  Proof.
    intros [_ H]. rewrite (mean_ext D (fun _ => c) (fun _ => c * 1)) by (intro; ring).
    rewrite mean_scale, H. ring.
  Qed.

  Lemma mean_affine D a b f : is_law D -> mean D (fun x => a + b * f x) = a + b * mean D f.
  Proof. intro H. rewrite (mean_plus D (fun _ => a)), mean_scale, mean_const by assumption. reflexivity. Qed.

  Lemma mean_within D f a b : is_law D -> (forall x, a <= f x <= b) -> a <= mean D f <= b.
  Proof.
    intros HD H. split; [rewrite <- (mean_const D a HD) | rewrite <- (mean_const D b HD)];
      (apply mean_mono; [apply HD | intro; apply H]).
  Qed.
End Mean.
