(** The luck of a coin: how far the mean of exp can exceed 1 (Bennett's inequality for two points).

    A coin U with probability p and a stake v of at most c on it, taken from its mean: (U - p) v. *)

From Coq Require Import Reals Lra Lia.
Open Scope R_scope.

(** exp(x) - 1 - x, the part of the exponential beyond its tangent. *)
Definition beyond_tangent (x : R) : R := exp x - 1 - x.

Definition coin_luck_statement : Prop :=
  forall p v c l, 0 <= p <= 1 -> - c <= v <= c -> 0 < c -> 0 < l ->
  p * exp (- (l * ((1 - p) * v))) + (1 - p) * exp (- (l * ((0 - p) * v)))
  <= exp (beyond_tangent (l * c) * (p * (1 - p))).

(** ** Proofs *)

Lemma exp_partial_sums x : Un_cv (fun n => sum_f_R0 (fun k => / INR (fact k) * x ^ k) n) (exp x).
Proof. unfold exp. destruct (exist_exp x) as [y H]. simpl. exact H. Qed.

(** Beyond its tangent exp grows faster than a square: term by term. *)
Lemma beyond_below_square s y : 0 <= s <= 1 -> 0 <= y -> beyond_tangent (s * y) <= s * s * beyond_tangent y.
Proof.
  intros Hs Hy. unfold beyond_tangent.
  enough (H : exp (s * y) <= 1 + s * y + s * s * (exp y - 1 - y)) by lra.
  apply Rle_cv_lim with
    (Un := fun n => sum_f_R0 (fun k => / INR (fact k) * (s * y) ^ k) (S n))
    (Vn := fun n => 1 + s * y + s * s * (sum_f_R0 (fun k => / INR (fact k) * y ^ k) (S n) - 1 - y)).
  - intro n. induction n as [|n IH].
    + simpl. lra.
    + rewrite (tech5 _ (S n)), (tech5 (fun k => / INR (fact k) * y ^ k) (S n)).
      set (k := S (S n)) in *. enough (Hterm : / INR (fact k) * (s * y) ^ k <= s * s * (/ INR (fact k) * y ^ k)).
      { set (A := sum_f_R0 _ (S n)) in *. set (B := sum_f_R0 (fun k => / INR (fact k) * y ^ k) (S n)) in *. lra. }
      rewrite Rpow_mult_distr.
      assert (Hk : s ^ k <= s * s).
      { unfold k. simpl. rewrite <- Rmult_assoc. rewrite <- (Rmult_1_r (s * s)) at 2.
        apply Rmult_le_compat_l; [apply Rmult_le_pos; lra|]. rewrite <- (pow1 n). apply pow_incr. lra. }
      assert (H0 : 0 <= / INR (fact k) * y ^ k).
      { apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, INR_fact_lt_0 | apply pow_le; exact Hy]. }
      replace (/ INR (fact k) * (s ^ k * y ^ k)) with (s ^ k * (/ INR (fact k) * y ^ k)) by ring.
      apply Rmult_le_compat_r; assumption.
  - intros eps Heps. destruct (exp_partial_sums (s * y) eps Heps) as [N H]. exists N. intros n Hn. apply H. lia.
  - assert (Hlim : Un_cv (fun n => sum_f_R0 (fun k => / INR (fact k) * y ^ k) (S n)) (exp y)).
    { intros eps Heps. destruct (exp_partial_sums y eps Heps) as [N H]. exists N. intros n Hn. apply H. lia. }
    assert (Hconst : forall c, Un_cv (fun _ => c) c).
    { intros c eps Heps. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity.
      exact Heps. }
    apply CV_plus; [apply Hconst|]. apply CV_mult; [apply Hconst|]. apply CV_minus; [|apply Hconst].
    apply CV_minus; [exact Hlim | apply Hconst].
Qed.

Lemma exp_above_parabola y : 0 <= y -> 1 + y + y * y / 2 <= exp y.
Proof.
  intro Hy. apply Rle_cv_lim with (Un := fun _ => 1 + y + y * y / 2)
    (Vn := fun n => sum_f_R0 (fun k => / INR (fact k) * y ^ k) (S (S n))).
  - intro n. induction n as [|n IH]; [simpl; lra|]. rewrite tech5.
    assert (0 <= / INR (fact (S (S (S n)))) * y ^ S (S (S n))); [|lra].
    apply Rmult_le_pos; [left; apply Rinv_0_lt_compat, INR_fact_lt_0 | apply pow_le; exact Hy].
  - intros eps Heps. exists 0%nat. intros. unfold R_dist. rewrite Rminus_diag_eq, Rabs_R0 by reflexivity. exact Heps.
  - intros eps Heps. destruct (exp_partial_sums y eps Heps) as [N H]. exists N. intros n Hn. apply H. lia.
Qed.

Lemma exp_below_zero t : 0 <= t -> exp (- t) <= 1 - t + t * t / 2.
Proof.
  intro Ht. pose proof (exp_above_parabola t Ht) as Hup. assert (Hsq : 0 <= t * t) by (apply Rmult_le_pos; lra).
  apply Rmult_le_reg_r with (exp t); [apply exp_pos|]. rewrite <- exp_plus, Rplus_opp_l, exp_0.
  apply Rle_trans with ((1 - t + t * t / 2) * (1 + t + t * t / 2)).
  - replace ((1 - t + t * t / 2) * (1 + t + t * t / 2)) with (1 + (t * t) * (t * t) / 4) by field.
    assert (0 <= t * t * (t * t)) by (apply Rmult_le_pos; exact Hsq). lra.
  - apply Rmult_le_compat_l; [|exact Hup].
    replace (1 - t + t * t / 2) with (((1 - t) * (1 - t) + 1) / 2) by field.
    pose proof (Rle_0_sqr (1 - t)). unfold Rsqr in *. lra.
Qed.

(** Up to y, exp is at most its tangent and, by the square, a share of what it is beyond at y. *)
Lemma bennett s y : 0 <= y -> -1 <= s <= 1 -> exp (s * y) <= 1 + s * y + s * s * beyond_tangent y.
Proof.
  intros Hy Hs. destruct (Rle_dec 0 s) as [H0|H0].
  - pose proof (beyond_below_square s y ltac:(lra) Hy) as H. unfold beyond_tangent in *. lra.
  - assert (Hsy : 0 <= - s * y) by (apply Rmult_le_pos; lra).
    pose proof (exp_below_zero (- s * y) Hsy) as H. replace (- (- s * y)) with (s * y) in H by ring.
    assert (Hhalf : y * y / 2 <= beyond_tangent y).
    { pose proof (exp_above_parabola y Hy). unfold beyond_tangent. lra. }
    assert (s * s * (y * y / 2) <= s * s * beyond_tangent y) by (apply Rmult_le_compat_l;
      [apply Rle_0_sqr | exact Hhalf]).
    lra.
Qed.

Theorem coin_luck_bounded : coin_luck_statement.
Proof.
  intros p v c l Hp Hv Hc Hl. set (y := l * c). assert (Hy : 0 <= y) by (apply Rmult_le_pos; lra).
  set (K := beyond_tangent y).
  assert (HK : 0 <= K) by (unfold K, beyond_tangent; pose proof (exp_ineq1_le y); lra).
  set (s := v / c).
  assert (Hs : -1 <= s <= 1).
  { unfold s. split; apply Rmult_le_reg_r with c; try exact Hc; unfold Rdiv; rewrite Rmult_assoc, Rinv_l; lra. }
  assert (Hss : s * s <= 1) by (destruct (Rle_dec 0 s); [|replace (s * s) with (- s * - s) by ring];
    rewrite <- (Rmult_1_r 1); apply Rmult_le_compat; lra).
  assert (Hside : forall q, -1 <= q <= 1 -> exp (- (l * (q * v))) <= 1 - q * (s * y) + q * q * K).
  { intros q Hq. replace (- (l * (q * v))) with (- (q * s) * y) by (unfold s, y; field; lra).
    assert (Hqs : -1 <= - (q * s) <= 1).
    { assert (Hbound : Rabs (q * s) <= 1).
      { rewrite Rabs_mult, <- (Rmult_1_r 1). apply Rmult_le_compat; try apply Rabs_pos; apply Rabs_le; lra. }
      unfold Rabs in Hbound. destruct (Rcase_abs (q * s)); lra. }
    eapply Rle_trans; [apply (bennett _ y Hy Hqs)|]. fold K.
    assert (q * q * K * (s * s) <= q * q * K * 1).
    { apply Rmult_le_compat_l; [apply Rmult_le_pos; [apply Rle_0_sqr | exact HK] | exact Hss]. } lra. }
  pose proof (Hside (1 - p) ltac:(lra)) as H1. pose proof (Hside (0 - p) ltac:(lra)) as H0.
  apply Rle_trans with (1 + K * (p * (1 - p))); [|apply exp_ineq1_le].
  assert (p * exp (- (l * ((1 - p) * v))) <= p * (1 - (1 - p) * (s * y) + (1 - p) * (1 - p) * K))
    by (apply Rmult_le_compat_l; lra).
  assert ((1 - p) * exp (- (l * ((0 - p) * v))) <= (1 - p) * (1 - (0 - p) * (s * y) + (0 - p) * (0 - p) * K))
    by (apply Rmult_le_compat_l; lra).
  lra.
Qed.
