(** The promise: any learner, no model, drift allowed.

    For every number of rounds, the probability that the slack of some metric ever fell below what was granted is at
    most delta. Each condition is one line of the table in docs/guarantee.md. *)

From Surefoot Require Export Leases.

Definition promise_kept_statement : Prop :=
  forall (g : guard) (delta : R),
  world_is_law g ->
  coin_unseen g ->
  rewards_in_bounds g ->
  baseline_below_ceiling g ->
  holdout_kept g ->
  bet_fixed_before_coin g ->
  bet_never_ruined g ->
  no_round_left_out g ->
  rounds_paid_at_worst g ->
  promise_declared g ->
  delta_split g delta ->
  forall n, prob_within (chance g) n (broken g) [] <= delta.

Theorem promise_kept : promise_kept_statement.
Proof.
  intros g delta Hlaw Hcoin Hbounds Hmost Hholdout Hfixed Hruin Hentered Hpaid Hdecl Hsplit n.
  apply Rle_trans with
    (prob_within (chance g) n (fun h => existsb (fun m => ever (bank_wrong g m) h) (metrics g)) []).
  - apply prob_follows; [exact Hlaw|]. intros h H.
    assert (E : existsb (fun m => ever (bank_wrong g m) h) (metrics g) = true).
    { unfold broken in H. apply existsb_exists in H. destruct H as [m [Hm H]]. apply existsb_exists. exists m.
      split; [exact Hm|]. destruct (ever (bank_wrong g m) h) eqn:Hgood; [reflexivity|]. exfalso.
      apply Rltb_true in H. destruct (Hpaid m h Hm) as [a Ha].
      pose proof (books_keep_the_floor g m h a) as Hfloor.
      assert (- reserve m <= slack g m h) by (apply Hfloor; assumption). lra. }
    apply (ever_of_prefix _ h h); [apply prefix_in_order; exists []; reflexivity | exact E].
  - eapply Rle_trans; [apply prob_union; exact Hlaw|].
    eapply Rle_trans; [|exact Hsplit].
    assert (H : forall ms, (forall m, In m ms -> In m (metrics g)) ->
      fold_right (fun m sum => prob_within (chance g) n (fun h => ever (bank_wrong g m) h) [] + sum) 0 ms
      <= fold_right (fun m sum => Bets.delta m + sum) 0 ms).
    { induction ms as [|m ms IH]; intro Hin; simpl; [lra|]. apply Rplus_le_compat; [|apply IH; intuition].
      eapply Rle_trans; [apply prob_follows with (B := bank_wrong g m); [exact Hlaw | tauto]|].
      apply bank_is_rarely_wrong; try assumption. apply Hin; left; reflexivity. }
    apply H. tauto.
Qed.
