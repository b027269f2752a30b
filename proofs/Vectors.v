(** Vectors as lists of real numbers: inner products, and the inequality of Cauchy and Schwarz. *)

From Coq Require Import Reals Lra List Lia.
Import ListNotations.
Open Scope R_scope.

Fixpoint dot (x y : list R) : R :=
  match x, y with
  | a :: x', b :: y' => a * b + dot x' y'
  | _, _ => 0
  end.

Fixpoint add (x y : list R) : list R :=
  match x, y with
  | a :: x', b :: y' => (a + b) :: add x' y'
  | _, _ => []
  end.

Definition scale (c : R) (x : list R) : list R := map (Rmult c) x.

(** If x is no longer than A and y no longer than B, their inner product is at least - A B. *)
Definition cauchy_schwarz_statement : Prop :=
  forall x y A B, length x = length y -> 0 <= A -> 0 <= B -> dot x x <= A * A -> dot y y <= B * B ->
  - (A * B) <= dot x y <= A * B.

(** Lengths add up at most. *)
Definition triangle_statement : Prop :=
  forall x y A B, length x = length y -> 0 <= A -> 0 <= B -> dot x x <= A * A -> dot y y <= B * B ->
  dot (add x y) (add x y) <= (A + B) * (A + B).

(** ** Proofs *)

Lemma dot_comm x y : dot x y = dot y x.
Proof. revert y. induction x as [|a x IH]; intros [|b y]; simpl; try reflexivity. rewrite IH. ring. Qed.

Lemma dot_scale_l c x y : dot (scale c x) y = c * dot x y.
Proof. revert y. induction x as [|a x IH]; intros [|b y]; simpl; try ring. unfold scale in IH. rewrite IH. ring. Qed.

Lemma dot_scale_r c x y : dot x (scale c y) = c * dot x y.
Proof. rewrite dot_comm, dot_scale_l, dot_comm. reflexivity. Qed.

Lemma dot_add_l x y z : length x = length y -> dot (add x y) z = dot x z + dot y z.
Proof.
  revert y z. induction x as [|a x IH]; intros [|b y] [|c z] H; simpl in *; try discriminate; try ring.
  rewrite IH by congruence. ring.
Qed.

Lemma dot_add_r x y z : length x = length y -> dot z (add x y) = dot z x + dot z y.
Proof. intro H. rewrite dot_comm, dot_add_l, (dot_comm x), (dot_comm y) by exact H. reflexivity. Qed.

Lemma add_length x y : length x = length y -> length (add x y) = length x.
Proof. revert y. induction x as [|a x IH]; intros [|b y] H; simpl in *; try discriminate; auto. Qed.

Lemma scale_length c x : length (scale c x) = length x.
Proof. apply map_length. Qed.

Lemma dot_nonneg x : 0 <= dot x x.
Proof. induction x as [|a x IH]; simpl; [lra|]. pose proof (Rle_0_sqr a). unfold Rsqr in *. lra. Qed.

Lemma dot_zero x y : dot x x <= 0 -> dot x y = 0.
Proof.
  revert y. induction x as [|a x IH]; intros [|b y] H; simpl in *; try reflexivity.
  pose proof (dot_nonneg x). pose proof (Rle_0_sqr a) as Ha. unfold Rsqr in Ha.
  rewrite (IH y) by lra. assert (a = 0) by (apply Rsqr_0_uniq; unfold Rsqr; lra). subst. ring.
Qed.

Lemma cauchy_schwarz : cauchy_schwarz_statement.
Proof.
  assert (Hlow : forall x y A B, length x = length y -> 0 <= A -> 0 <= B -> dot x x <= A * A -> dot y y <= B * B ->
    - (A * B) <= dot x y).
  { intros x y A B Hl HA HB Hx Hy. destruct HA as [HA|<-]; [|rewrite (dot_zero x y); lra].
    destruct HB as [HB|<-]; [|rewrite dot_comm, (dot_zero y x); lra].
    pose proof (dot_nonneg (add (scale B x) (scale A y))) as H.
    rewrite dot_add_l, !dot_add_r, !dot_scale_l, !dot_scale_r, (dot_comm y x) in H by (rewrite !scale_length; exact Hl).
    assert (B * B * dot x x <= B * B * (A * A)) by (apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | exact Hx]).
    assert (A * A * dot y y <= A * A * (B * B)) by (apply Rmult_le_compat_l; [apply Rmult_le_pos; lra | exact Hy]).
    apply Rmult_le_reg_l with (A * B); [apply Rmult_lt_0_compat; lra|]. lra. }
  intros x y A B Hl HA HB Hx Hy. split; [apply Hlow; assumption|].
  pose proof (Hlow (scale (-1) x) y A B) as H. rewrite scale_length, !dot_scale_l, dot_scale_r in H.
  assert (- (A * B) <= -1 * dot x y) by (apply H; lra || assumption). lra.
Qed.

Lemma triangle : triangle_statement.
Proof.
  intros x y A B Hl HA HB Hx Hy. rewrite dot_add_l, !dot_add_r, (dot_comm y x) by exact Hl.
  destruct (cauchy_schwarz x y A B) as [_ H]; try assumption. lra.
Qed.
