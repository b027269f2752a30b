(** The exponential from below, in whole numbers.

    1 + x/2^n <= exp(x/2^n), and squaring n times gives exp(x). Every step is rounded down, so the result is never more
    than exp(x), and less by a part of about x^2/2^(n+1). *)

From Coq Require Import ZArith Reals Lra Lia.

Open Scope Z_scope.

(** Numbers count in units of 2^-420; 200 squarings are more than fifty digits. *)
Definition fine : Z := 2 ^ 420.
Definition squarings : nat := 200.
Definition halved : Z := 2 ^ 200.

Fixpoint square_down (n : nat) (y : Z) : Z :=
  match n with
  | O => y
  | S n' => square_down n' (y * y / fine)
  end.

(** exp(x/d) from below, for d > 0; beyond 2048 it is not larger than there. *)
Definition exp_below (x d : Z) : Z :=
  let y := fine + Z.min x (2048 * d) * fine / (d * halved) in
  if y <? 0 then 0 else square_down squarings y.

(** ** Statement *)

Definition exp_below_statement : Prop :=
  forall x d, 0 < d -> (0 <= IZR (exp_below x d) <= IZR fine * exp (IZR x / IZR d))%R.

(** ** Proofs *)

Open Scope R_scope.

Lemma fine_positive : 0 < IZR fine.
Proof. apply IZR_lt. reflexivity. Qed.

Lemma div_below a b : (0 < b)%Z -> IZR (a / b) <= IZR a / IZR b.
Proof.
  intro Hb. pose proof (IZR_lt _ _ Hb) as Hb'. pose proof (Z.mul_div_le a b Hb) as H. apply IZR_le in H.
  rewrite mult_IZR in H. apply Rmult_le_reg_l with (IZR b); [exact Hb'|].
  replace (IZR b * (IZR a / IZR b)) with (IZR a) by (field; lra). exact H.
Qed.

Lemma square_down_below n : forall y t, (0 <= y)%Z -> IZR y <= IZR fine * exp t ->
  0 <= IZR (square_down n y) <= IZR fine * exp (2 ^ n * t).
Proof.
  pose proof fine_positive as Hf. induction n as [|n IH]; intros y t Hy H.
  - simpl. rewrite Rmult_1_l. split; [apply IZR_le; exact Hy | exact H].
  - assert (Hy' : (0 <= y * y / fine)%Z) by (apply Z.div_pos; [apply Z.mul_nonneg_nonneg; exact Hy | reflexivity]).
    assert (H' : IZR (y * y / fine) <= IZR fine * exp (2 * t)).
    { eapply Rle_trans; [apply div_below; reflexivity|]. rewrite mult_IZR. apply IZR_le in Hy.
      apply Rmult_le_reg_l with (IZR fine); [exact Hf|].
      replace (IZR fine * (IZR y * IZR y / IZR fine)) with (IZR y * IZR y) by (field; lra).
      replace (IZR fine * (IZR fine * exp (2 * t))) with ((IZR fine * exp t) * (IZR fine * exp t)).
      - apply Rmult_le_compat; lra.
      - replace (2 * t) with (t + t) by ring. rewrite exp_plus. ring. }
    specialize (IH _ _ Hy' H'). simpl. replace (2 * 2 ^ n * t) with (2 ^ n * (2 * t)) by ring. exact IH.
Qed.

Theorem exp_below_is_below : exp_below_statement.
Proof.
  intros x d Hd. pose proof fine_positive as Hf. pose proof (IZR_lt _ _ Hd) as Hd'.
  unfold exp_below. set (y := (fine + Z.min x (2048 * d) * fine / (d * halved))%Z).
  destruct (Z.ltb_spec y 0) as [Hy|Hy].
  - split; [lra|]. apply Rmult_le_pos; [lra | left; apply exp_pos].
  - assert (Hpow : IZR halved = 2 ^ squarings) by (unfold halved; rewrite (pow_IZR 2 squarings); reflexivity).
    assert (Hpos : 0 < 2 ^ squarings) by (apply pow_lt; lra).
    assert (Hdp : (0 < d * halved)%Z) by (apply Z.mul_pos_pos; [exact Hd | reflexivity]).
    set (t := IZR (Z.min x (2048 * d)) / IZR d / 2 ^ squarings).
    destruct (square_down_below squarings y t Hy) as [H0 H1].
    + unfold y. rewrite plus_IZR. apply Rle_trans with (IZR fine * (1 + t)).
      * rewrite Rmult_plus_distr_l, Rmult_1_r. apply Rplus_le_compat_l.
        eapply Rle_trans; [apply div_below; exact Hdp|]. rewrite !mult_IZR, Hpow. right. unfold t. field. lra.
      * apply Rmult_le_compat_l; [lra | apply exp_ineq1_le].
    + split; [exact H0|]. eapply Rle_trans; [exact H1|]. apply Rmult_le_compat_l; [lra|].
      replace (2 ^ squarings * t) with (IZR (Z.min x (2048 * d)) / IZR d) by (unfold t; field; lra).
      assert (Hmin : IZR (Z.min x (2048 * d)) / IZR d <= IZR x / IZR d).
      { apply Rmult_le_compat_r; [left; apply Rinv_0_lt_compat; exact Hd' | apply IZR_le; lia]. }
      destruct Hmin as [Hmin | ->]; [left; apply exp_increasing; exact Hmin | right; reflexivity].
Qed.
