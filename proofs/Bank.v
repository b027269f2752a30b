(** The bank: what the wealths prove of the slack.

    The wealth of a rate is the product of what has entered, round by round. With probability 1 - delta, at all times
    and for all prefixes at once, whatever the wealths certify is true. *)

From Surefoot Require Export Guard.

Section Bank.
  Variable g : guard.
  Notation history := (list (round (Outcome g))).
  Implicit Types (m : metric (Outcome g)) (h now : history).

  (** The wealth of a rate, as computed now, of the rounds of a prefix. *)
  Fixpoint wealth m (l : R) now h : R :=
    match h with
    | [] => 1
    | _ :: past => wealth m l now past * entries g m l now (length past)
    end.

  (** What a certificate shows: the wealths prove that the slack of the prefix is at least x. *)
  Definition certified m now h (x : R) : Prop :=
    / delta m <= mixture (rates m) (fun l => wealth m l now h * exp (- (l * x))).

  (** The one event of a metric on which its bank may be wrong. *)
  Definition bank_wrong m : event (round (Outcome g)) :=
    refuted (rates m)
      (fun l h r => factor m l (share g h) (bets g m l h (length h)) (coin r) (reward m (played r))
                    * exp (- (l * next_slack g m h)))
      (delta m).
End Bank.

(** ** Statements *)

Definition bank_is_rarely_wrong_statement : Prop :=
  forall g m n, world_is_law g -> coin_unseen g -> rewards_in_bounds g -> baseline_below_ceiling g -> holdout_kept g ->
  bet_never_ruined g -> promise_declared g -> In m (metrics g) ->
  prob_within (chance g) n (bank_wrong g m) [] <= delta m.

Definition certificate_is_true_statement : Prop :=
  forall g m now h x, rewards_in_bounds g -> promise_declared g -> bet_never_ruined g -> bet_fixed_before_coin g ->
  no_round_left_out g -> In m (metrics g) ->
  decision_order now h -> certified g m now h x -> ever (bank_wrong g m) now = false -> x <= slack g m h.

(** ** Proofs *)

Lemma rate_positive rates w l : rates_ok rates -> In (w, l) rates -> 0 <= w /\ 0 < l.
Proof. intros [H _] Hin. rewrite Forall_forall in H. apply (H _ Hin). Qed.

Theorem bank_is_rarely_wrong : bank_is_rarely_wrong_statement.
Proof.
  intros g m n Hlaw Hcoin Hbounds Hmost [eps [Heps Hshare]] Hruin Hdecl Hm.
  destruct (Hdecl m Hm) as (Hlow & Hone & Halpha & Hres & Hdelta & Hrates).
  apply evidence_is_rare; try assumption. intros w l Hl h.
  destruct (rate_positive _ _ _ Hrates Hl) as [_ Hpos]. specialize (Hshare h).
  split.
  - intro r. apply Rmult_le_pos; [|left; apply exp_pos].
    apply factor_nonneg; [lra | apply Hbounds; exact Hm | lra | lra | apply (Hruin m w l h Hm Hl)].
  - rewrite (mean_ext _ _ (fun r => exp (- (l * next_slack g m h))
      * factor m l (share g h) (bets g m l h (length h)) (coin r) (reward m (played r)))) by (intro; ring).
    rewrite mean_scale.
    apply Rle_trans with (exp (- (l * next_slack g m h)) * exp (l * next_slack g m h)).
    + apply Rmult_le_compat_l; [left; apply exp_pos|].
      apply fair_bet; [apply Hlaw | apply Hcoin | intro; apply Hbounds; exact Hm | lra | lra
        | apply Hmost; exact Hm | apply (Hruin m w l h Hm Hl)].
    + rewrite <- exp_plus, Rplus_opp_l, exp_0. lra.
Qed.

(** What has entered is at most the product of the bets, so the evidence would be at least as strong. *)
Lemma wealth_at_most_bets g m w l now h :
  rewards_in_bounds g -> promise_declared g -> bet_never_ruined g -> bet_fixed_before_coin g -> no_round_left_out g ->
  In m (metrics g) -> In (w, l) (rates m) -> decision_order now h ->
  0 <= wealth g m l now h /\
  wealth g m l now h * exp (- (l * slack g m h))
  <= product (fun l h r => factor m l (share g h) (bets g m l h (length h)) (coin r) (reward m (played r))
                           * exp (- (l * next_slack g m h))) l h.
Proof.
  intros Hbounds Hdecl Hruin Hfixed Hentered Hm Hl. destruct (Hdecl m Hm) as (Hlow & _ & Halpha & _ & _ & Hrates).
  destruct (rate_positive _ _ _ Hrates Hl) as [_ Hpos].
  induction h as [|r h IH]; intros [newer Hnow]; simpl.
  { rewrite Rmult_0_r, Ropp_0, exp_0. lra. }
  assert (Hnow' : now = (newer ++ [r]) ++ h) by (rewrite <- app_assoc; exact Hnow).
  destruct IH as [IH0 IH1]; [exists (newer ++ [r]); exact Hnow'|].
  assert (He : entry_of m l (share g h) (bets g m l now (length h)) (coin r) (reward m (played r))
    (entries g m l now (length h))) by (apply (Hentered m w l now r h Hm Hl); exists newer; exact Hnow).
  rewrite Hnow' in He at 1. rewrite (Hfixed m l Hm) in He.
  assert (Hy : low m <= reward m (played r) <= 1) by (apply Hbounds; exact Hm).
  destruct (entry_is_at_most_its_bet _ m (share g h) l (bets g m l h (length h)) (coin r) (reward m (played r))
    (entries g m l now (length h))) as [He0 He1];
    [lra | exact Hy | lra | lra | apply (Hruin m w l h Hm Hl) | exact He |].
  split; [apply Rmult_le_pos; assumption|].
  replace (exp (- (l * (slack g m h + next_slack g m h))))
    with (exp (- (l * slack g m h)) * exp (- (l * next_slack g m h)))
    by (rewrite <- exp_plus; f_equal; ring).
  replace (wealth g m l now h * entries g m l now (length h)
           * (exp (- (l * slack g m h)) * exp (- (l * next_slack g m h))))
    with ((wealth g m l now h * exp (- (l * slack g m h)))
          * (entries g m l now (length h) * exp (- (l * next_slack g m h)))) by ring.
  apply Rmult_le_compat; try assumption.
  - apply Rmult_le_pos; [exact IH0 | left; apply exp_pos].
  - apply Rmult_le_pos; [exact He0 | left; apply exp_pos].
  - apply Rmult_le_compat_r; [left; apply exp_pos | exact He1].
Qed.

Theorem certificate_is_true : certificate_is_true_statement.
Proof.
  intros g m now h x Hbounds Hdecl Hruin Hfixed Hentered Hm Horder Hcert Hgood.
  destruct (Hdecl m Hm) as (_ & _ & _ & _ & _ & Hrates).
  destruct (Rle_dec x (slack g m h)) as [|Hx]; [assumption|]. exfalso.
  enough (ever (bank_wrong g m) now = true) by congruence.
  apply (ever_of_prefix _ now h); [apply prefix_in_order; exact Horder|].
  apply Rleb_true. eapply Rle_trans; [exact Hcert|].
  apply mixture_mono; [apply Hrates|]. intros w l Hl.
  destruct (rate_positive _ _ _ Hrates Hl) as [_ Hpos].
  destruct (wealth_at_most_bets g m w l now h) as [H0 H1]; try assumption.
  eapply Rle_trans; [|exact H1]. apply Rmult_le_compat_l; [exact H0|].
  left. apply exp_increasing, Ropp_lt_contravar, Rmult_lt_compat_l; lra.
Qed.
