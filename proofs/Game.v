(** The game: rounds that follow each other, each with a law that may depend on everything before it.

    [prob_within n A h] is the probability that the event A holds now or at some time within the next n rounds, given
    the history h. Main result: Ville's inequality. A nonnegative quantity that does not grow in the mean exceeds c
    times its first value, *ever*, with probability at most 1/c. That is why looking often costs nothing. *)

From Surefoot Require Export Laws.

Section Game.
  Variable Round : Type.

  (** The newest round comes first. *)
  Definition history := list Round.

  (** The world: the law of the next round, given all that has happened. *)
  Variable chance : history -> law Round.
  Hypothesis chance_is_law : forall h, is_law (chance h).

  Definition event := history -> bool.

  Fixpoint prob_within (n : nat) (A : event) (h : history) : R :=
    if A h then 1
    else match n with
         | O => 0
         | S n' => mean (chance h) (fun r => prob_within n' A (r :: h))
         end.

  (** The event has held at some time of the history. *)
  Fixpoint ever (A : event) (h : history) : bool :=
    A h || match h with [] => false | _ :: past => ever A past end.

  Definition supermartingale (M : history -> R) : Prop :=
    (forall h, 0 <= M h) /\ (forall h, mean (chance h) (fun r => M (r :: h)) <= M h).

  Lemma prob_bounds A n : forall h, 0 <= prob_within n A h <= 1.
  Proof.
    induction n as [|n IH]; intro h; simpl; destruct (A h); try lra. apply mean_within; auto.
  Qed.

  Theorem ville M c n :
    supermartingale M -> 0 < c -> c * prob_within n (fun h => Rleb c (M h)) [] <= M [].
  Proof.
    intros [Hpos Hsuper] Hc.
    enough (H : forall h, c * prob_within n (fun h => Rleb c (M h)) h <= M h) by apply H.
    induction n as [|n IH]; intro h; simpl; destruct (Rleb c (M h)) eqn:E.
    - apply Rleb_true in E. lra.
    - rewrite Rmult_0_r. apply Hpos.
    - apply Rleb_true in E. lra.
    - rewrite <- mean_scale. apply Rle_trans with (mean (chance h) (fun r => M (r :: h))); [|apply Hsuper].
      apply mean_mono; [apply chance_is_law | intro; apply IH].
  Qed.

  (** If A can hold only where B has held before, A is no more probable than B. *)
  Theorem prob_follows A B n :
    (forall h, A h = true -> ever B h = true) -> prob_within n A [] <= prob_within n B [].
  Proof.
    intro H. destruct (B []) eqn:E.
    { replace (prob_within n B []) with 1 by (destruct n; simpl; rewrite E; reflexivity). apply prob_bounds. }
    assert (Hnot : ever B [] = false) by (simpl; rewrite E; reflexivity). revert Hnot. clear E.
    generalize (@nil Round) as h. induction n as [|n IH]; intros h Hnot; simpl;
      (destruct (A h) eqn:EA; [rewrite (H h EA) in Hnot; discriminate|]);
      (destruct (B h) eqn:EB; [destruct h; simpl in Hnot; rewrite EB in Hnot; discriminate|]); [lra|].
    apply mean_mono; [apply chance_is_law|]. intro r. destruct (B (r :: h)) eqn:E.
    - replace (prob_within n B (r :: h)) with 1 by (destruct n; simpl; rewrite E; reflexivity). apply prob_bounds.
    - apply IH. simpl. rewrite E. exact Hnot.
  Qed.

  (** Several events cost the sum of what each costs. *)
  Theorem prob_union {I} (which : list I) (A : I -> event) n h :
    prob_within n (fun h => existsb (fun i => A i h) which) h
    <= fold_right (fun i total => prob_within n (A i) h + total) 0 which.
  Proof.
    revert h. induction n as [|n IHn]; intro h; simpl.
    - induction which as [|i which IH]; simpl; [lra|].
      destruct (A i h), (existsb (fun i => A i h) which); simpl in *; lra.
    - destruct (existsb (fun i => A i h) which) eqn:E.
      + clear IHn. induction which as [|i which IH]; simpl in *; [discriminate|].
        assert (Hrest : forall l, 0 <= fold_right (fun i total =>
          (if A i h then 1 else mean (chance h) (fun r => prob_within n (A i) (r :: h))) + total) 0 l).
        { induction l as [|j l IHl]; simpl; [lra|]. destruct (A j h); [lra|].
          assert (0 <= mean (chance h) (fun r => prob_within n (A j) (r :: h)) <= 1); [|lra].
          apply mean_within; [apply chance_is_law | intro; apply prob_bounds]. }
        destruct (A i h) eqn:EA; simpl in *; [specialize (Hrest which); lra|].
        assert (0 <= mean (chance h) (fun r => prob_within n (A i) (r :: h)) <= 1);
          [|specialize (IH E); lra].
        apply mean_within; [apply chance_is_law | intro; apply prob_bounds].
      + apply Rle_trans with
          (mean (chance h) (fun r => fold_right (fun i total => prob_within n (A i) (r :: h) + total) 0 which)).
        * apply mean_mono; [apply chance_is_law | intro; apply IHn].
        * clear IHn. induction which as [|i which IH]; simpl in *.
          { right. apply mean_const, chance_is_law. }
          destruct (A i h) eqn:EA; simpl in *; [discriminate|]. rewrite mean_plus. specialize (IH E). lra.
  Qed.
End Game.

Arguments prob_within {Round}.
Arguments ever {Round}.
Arguments supermartingale {Round}.
