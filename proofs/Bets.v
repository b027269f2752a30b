(** Bets on one round: the slack it brings, the worst it can cost, and factors that do not exceed it in the mean.

    In a round the baseline names an action, any learner names a proposal. The share p is fixed, a coin is drawn, the
    proposal is played with probability p and the baseline otherwise. Rewards are divided by their upper bound. *)

From Surefoot Require Export Order.

(** What both actions would bring. The reward of the one that the coin chose is what is played. *)
Record round (Outcome : Type) := Round { coin : bool; learner : Outcome; baseline : Outcome }.
Arguments coin {Outcome}.
Arguments learner {Outcome}.
Arguments baseline {Outcome}.

Definition played {Outcome} (r : round Outcome) : Outcome := if coin r then learner r else baseline r.

(** What is promised of one metric: a floor (sign 1: at least 1 - alpha of the baseline's reward) or a ceiling (sign -1:
    at most 1 + alpha of its cost); rewards in [low, 1]; the baseline's mean at most [most]. *)
Record metric (Outcome : Type) := Metric {
  reward : Outcome -> R;
  sign : R;
  alpha : R;
  low : R;
  most : R;
  reserve : R;
  delta : R;
  rates : list (R * R)
}.
Arguments reward {Outcome}.
Arguments sign {Outcome}.
Arguments alpha {Outcome}.
Arguments low {Outcome}.
Arguments most {Outcome}.
Arguments reserve {Outcome}.
Arguments delta {Outcome}.
Arguments rates {Outcome}.

Section Bets.
  Context {Outcome : Type}.
  Variable m : metric Outcome.
  Implicit Types (p a b l y : R) (U : bool).

  (** Slack of a round whose mean rewards are a (the learner's) and b (the baseline's). *)
  Definition slack_of p a b : R := sign m * p * a + (alpha m - sign m * p) * b.

  (** The most that it may cost on average, whatever the means. *)
  Definition worst_of p : R :=
    let weight := alpha m - sign m * p in
    Rmax 0 (- (Rmin (sign m * p * low m) (sign m * p) + Rmin (weight * low m) (weight * most m))).

  (** What a rate does with a round. [Centred a b]: it bets around the centres a and b. [AtWorst]: it would risk ruin,
      and books the round at its worst. [Agreeing]: proposal and baseline are the same (or the share is 0), nothing is
      at stake, and alpha y is earned. *)
  Inductive bet := Centred (a b : R) | AtWorst | Agreeing.

  Definition coefficient l p U : R := if U then sign m * l else l * ((alpha m - sign m * p) / (1 - p)).

  Definition factor l p (B : bet) U y : R :=
    match B with
    | Centred a b => exp (l * slack_of p a b) * (1 + coefficient l p U * (y - if U then a else b))
    | AtWorst => exp (- (l * worst_of p))
    | Agreeing => 1 + l * alpha m * y
    end.

  (** The least that it can be once the coin has fallen. *)
  Definition least_factor l p B U : R := Rmin (factor l p B U (low m)) (factor l p B U 1).

  (** A bet that never falls below 0, whatever the coin and the reward; agreeing rounds have nothing at stake. *)
  Definition never_ruined l p B : Prop :=
    match B with
    | Centred a b => forall U y, low m <= y <= 1 -> 0 <= 1 + coefficient l p U * (y - if U then a else b)
    | AtWorst => True
    | Agreeing => p = 0
    end.

  (** What enters for a round: the factor of its reward; where the reward is missing, the least of the side that was
      played; and for an agreeing round whose reward is late, 1. *)
  Inductive entry_of l p B U y : R -> Prop :=
  | came : entry_of l p B U y (factor l p B U y)
  | missing : entry_of l p B U y (least_factor l p B U)
  | agreeing_late : B = Agreeing -> entry_of l p B U y 1.

  (** The coin comes up with probability p, and is independent of what both actions would bring. *)
  Definition coin_is (D : law (round Outcome)) p : Prop :=
    forall f : bool -> Outcome -> Outcome -> R,
    mean D (fun r => f (coin r) (learner r) (baseline r))
    = p * mean D (fun r => f true (learner r) (baseline r))
      + (1 - p) * mean D (fun r => f false (learner r) (baseline r)).
End Bets.

Arguments Centred (a b)%R.

(** ** Statements *)

(** A floor says: at least 1 - alpha of what the baseline earns. *)
Definition slack_of_a_floor_statement : Prop :=
  forall Outcome (m : metric Outcome) p a b, sign m = 1 ->
  slack_of m p a b = (p * a + (1 - p) * b) - (1 - alpha m) * b.

(** A ceiling says: at most 1 + alpha of what the baseline costs. *)
Definition slack_of_a_ceiling_statement : Prop :=
  forall Outcome (m : metric Outcome) p a b, sign m = -1 ->
  slack_of m p a b = (1 + alpha m) * b - (p * a + (1 - p) * b).

(** The worst needs no event. *)
Definition worst_statement : Prop :=
  forall Outcome (m : metric Outcome) p a b,
  low m <= a <= 1 -> low m <= b <= most m -> - worst_of m p <= slack_of m p a b.

(** A share that costs nothing at its worst: for a floor alpha, and more where means are bounded. *)
Definition free_share_statement : Prop :=
  forall Outcome (m : metric Outcome) p, sign m = 1 -> 0 <= low m <= most m -> most m <= 1 ->
  0 <= p -> p * (most m - low m) <= alpha m * most m -> worst_of m p = 0.

(** A bet has a mean of at most exp(rate d), whatever the means are. *)
Definition fair_bet_statement : Prop :=
  forall Outcome (m : metric Outcome) (D : law (round Outcome)) p l B,
  is_law D -> coin_is D p -> (forall o, low m <= reward m o <= 1) -> 0 <= p < 1 -> 0 <= l ->
  mean D (fun r => reward m (baseline r)) <= most m -> never_ruined m l p B ->
  mean D (fun r => factor m l p B (coin r) (reward m (played r)))
  <= exp (l * slack_of m p (mean D (fun r => reward m (learner r))) (mean D (fun r => reward m (baseline r)))).

(** What enters is never negative, and never more than the bet. *)
Definition entry_statement : Prop :=
  forall Outcome (m : metric Outcome) p l B U y e,
  0 <= low m -> low m <= y <= 1 -> 0 <= alpha m -> 0 <= l -> never_ruined m l p B ->
  entry_of m l p B U y e -> 0 <= e <= factor m l p B U y.

(** ** Proofs *)

Lemma slack_of_a_floor : slack_of_a_floor_statement.
Proof. intros Outcome m p a b H. unfold slack_of. rewrite H. ring. Qed.

Lemma slack_of_a_ceiling : slack_of_a_ceiling_statement.
Proof. intros Outcome m p a b H. unfold slack_of. rewrite H. ring. Qed.

(** An affine function is least at an end of its interval. *)
Lemma affine_least c x lo hi : lo <= x <= hi -> Rmin (c * lo) (c * hi) <= c * x.
Proof.
  intros H. destruct (Rle_dec 0 c).
  - apply Rle_trans with (c * lo); [apply Rmin_l | apply Rmult_le_compat_l; lra].
  - apply Rle_trans with (c * hi); [apply Rmin_r | apply Rmult_le_compat_neg_l; lra].
Qed.

Lemma worst_is_worst : worst_statement.
Proof.
  intros Outcome m p a b Ha Hb. unfold worst_of, slack_of.
  pose proof (affine_least (sign m * p) a _ _ Ha) as H1. rewrite Rmult_1_r in H1.
  pose proof (affine_least (alpha m - sign m * p) b _ _ Hb) as H2.
  match goal with |- - Rmax 0 ?x <= _ => pose proof (Rmax_r 0 x) end. lra.
Qed.

Lemma worst_nonneg {Outcome} (m : metric Outcome) p : 0 <= worst_of m p.
Proof. apply Rmax_l. Qed.

Lemma free_share : free_share_statement.
Proof.
  intros Outcome m p Hs Hlow Hmost Hp Hfree. unfold worst_of. rewrite Hs, !Rmult_1_l. apply Rmax_left.
  assert (p * low m <= p * 1) by (apply Rmult_le_compat_l; lra). rewrite Rmin_left by lra.
  assert (0 <= p * low m) by (apply Rmult_le_pos; lra).
  destruct (Rle_dec p (alpha m)).
  - rewrite Rmin_left by (apply Rmult_le_compat_l; lra).
    assert (0 <= (alpha m - p) * low m) by (apply Rmult_le_pos; lra). lra.
  - rewrite Rmin_right by (apply Rmult_le_compat_neg_l; lra). lra.
Qed.

Lemma exp_above_tangent x : 1 + x <= exp x.
Proof. apply exp_ineq1_le. Qed.

(** exp(l d') (1 + l (d - d')) <= exp(l d): the centres cancel. *)
Lemma fair_bet : fair_bet_statement.
Proof.
  intros Outcome m D p l B HD Hcoin Hbounds Hp Hl Hmost Hruin.
  set (a := mean D (fun r => reward m (learner r))). set (b := mean D (fun r => reward m (baseline r))).
  assert (Ha : low m <= a <= 1) by (apply mean_within; auto).
  assert (Hb : low m <= b <= 1) by (apply mean_within; auto).
  unfold played.
  rewrite (Hcoin (fun U oa ob => factor m l p B U (reward m (if U then oa else ob)))).
  destruct B as [a' b' | |]; simpl.
  - set (e := exp (l * slack_of m p a' b')).
    rewrite (mean_ext D _ (fun r => e * (1 - sign m * l * a') + (e * (sign m * l)) * reward m (learner r)))
      by (intro r; ring).
    set (c := l * ((alpha m - sign m * p) / (1 - p))).
    rewrite (mean_ext D (fun r => e * (1 + c * (reward m (baseline r) - b')))
      (fun r => e * (1 - c * b') + (e * c) * reward m (baseline r))) by (intro r; ring).
    rewrite !mean_affine by assumption. fold a b.
    replace (_ + _) with (e * (1 + l * (slack_of m p a b - slack_of m p a' b')))
      by (unfold c, slack_of; field; lra).
    apply Rle_trans with (e * exp (l * (slack_of m p a b - slack_of m p a' b'))).
    + apply Rmult_le_compat_l; [left; apply exp_pos | apply exp_above_tangent].
    + unfold e. rewrite <- exp_plus. right. f_equal. ring.
  - rewrite !mean_const by assumption.
    pose proof (worst_is_worst _ m p a b Ha (conj (proj1 Hb) Hmost)) as Hw.
    assert (H : - (l * worst_of m p) <= l * slack_of m p a b).
    { replace (- (l * worst_of m p)) with (l * - worst_of m p) by ring. apply Rmult_le_compat_l; lra. }
    replace (_ + _) with (exp (- (l * worst_of m p))) by ring.
    destruct H as [H | ->]; [left; apply exp_increasing; exact H | right; reflexivity].
  - simpl in Hruin. subst p. unfold slack_of.
    rewrite (mean_affine D 1 (l * alpha m) (fun r => reward m (baseline r))) by assumption. fold b.
    apply Rle_trans with (1 + l * (sign m * 0 * a + (alpha m - sign m * 0) * b)); [right; ring|].
    apply exp_above_tangent.
Qed.

Lemma factor_affine {Outcome} (m : metric Outcome) l p B U :
  exists c k, forall y, factor m l p B U y = c + k * y.
Proof.
  destruct B as [a b | |]; simpl.
  - exists (exp (l * slack_of m p a b) * (1 - coefficient m l p U * (if U then a else b))),
      (exp (l * slack_of m p a b) * coefficient m l p U). intro y. ring.
  - exists (exp (- (l * worst_of m p))), 0. intro y. ring.
  - exists 1, (l * alpha m). intro y. ring.
Qed.

Lemma least_is_least {Outcome} (m : metric Outcome) l p B U y :
  low m <= y <= 1 -> least_factor m l p B U <= factor m l p B U y.
Proof.
  intro Hy. destruct (factor_affine m l p B U) as [c [k H]]. unfold least_factor. rewrite !H.
  pose proof (affine_least k y _ _ Hy). revert H0. unfold Rmin.
  destruct (Rle_dec (k * low m) (k * 1)), (Rle_dec (c + k * low m) (c + k * 1)); lra.
Qed.

Lemma factor_nonneg {Outcome} (m : metric Outcome) l p B U y :
  0 <= low m -> low m <= y <= 1 -> 0 <= alpha m -> 0 <= l -> never_ruined m l p B -> 0 <= factor m l p B U y.
Proof.
  intros Hlow Hy Ha Hl H. destruct B as [a b | |]; simpl in *.
  - apply Rmult_le_pos; [left; apply exp_pos | apply H; exact Hy].
  - left; apply exp_pos.
  - assert (0 <= l * alpha m * y) by (repeat apply Rmult_le_pos; lra). lra.
Qed.

Lemma entry_is_at_most_its_bet : entry_statement.
Proof.
  intros Outcome m p l B U y e Hlow Hy Ha Hl Hruin He. destruct He as [| | ->].
  - split; [apply factor_nonneg; assumption | lra].
  - split; [|apply least_is_least; exact Hy].
    apply Rmin_glb; apply factor_nonneg; try assumption; lra.
  - split; [lra|]. simpl. assert (0 <= l * alpha m * y) by (repeat apply Rmult_le_pos; lra). lra.
Qed.

(** The balance h of earlier versions is a centred bet with d' = 0. *)
Lemma balance_is_centred {Outcome} (m : metric Outcome) p l h U y :
  sign m * sign m = 1 -> p < 1 -> alpha m - sign m * p <> 0 ->
  factor m l p (Centred (- (sign m * (1 - p) * h)) (p * (1 - p) * h / (alpha m - sign m * p))) U y
  = 1 + l * (if U then sign m * y + (1 - p) * h else y * ((alpha m - sign m * p) / (1 - p)) - p * h).
Proof.
  intros Hs Hp Hr. simpl. set (q := alpha m - sign m * p) in *.
  replace (slack_of m p (- (sign m * (1 - p) * h)) (p * (1 - p) * h / q)) with 0.
  - rewrite Rmult_0_r, exp_0, Rmult_1_l. unfold coefficient. fold q. destruct U.
    + replace (sign m * l * (y - - (sign m * (1 - p) * h)))
        with (l * (sign m * y + (sign m * sign m) * ((1 - p) * h))) by ring. rewrite Hs. ring.
    + field. split; lra.
  - unfold slack_of. fold q.
    replace (sign m * p * - (sign m * (1 - p) * h)) with (- (sign m * sign m * (p * (1 - p) * h))) by ring.
    rewrite Hs. field. exact Hr.
Qed.
