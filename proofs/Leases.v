(** The books: what is in the bank, what of it is leased out, and which rounds have been charged.

    One process is the case without leases. A server that holds a lease decides by itself, and spends its lease at the
    worst of every round. Handing in charges its rounds to the bank. Rounds of all servers enter in one order, that of
    their decisions: those before the oldest that has not been handed in. Everything may happen at any time, in any
    order, by any rule: the world decides. *)

From Coq Require Import Lia Arith.
From Surefoot Require Export Bank.

(** An account: what the bank holds, what each server is leased, and who has each round (newest first): a server, or
    nobody (None) once it is charged to the bank. *)
Record account := Account { held : R; lease : nat -> R; holder : list (option nat) }.

Section Books.
  Variable g : guard.
  Variable m : metric (Outcome g).
  Notation history := (list (round (Outcome g))).
  Implicit Types (h : history) (a : account).

  (** The sum of a quantity over the rounds that are in certain hands. *)
  Fixpoint total (whose : option nat -> bool) (hands : list (option nat)) h (quantity : history -> R) : R :=
    match hands, h with
    | k :: hands', _ :: past => (if whose k then quantity past else 0) + total whose hands' past quantity
    | _, _ => 0
    end.

  Definition is_charged (k : option nat) : bool := match k with None => true | Some _ => false end.
  Definition is_leased (k : option nat) : bool := match k with None => false | Some _ => true end.
  Definition is_with (i : nat) (k : option nat) : bool := match k with None => false | Some j => Nat.eqb i j end.

  (** What a server has spent of its lease, and what all leases add up to. *)
  Definition spent a h (i : nat) : R := total (is_with i) (holder a) h (next_worst g m).
  Definition leased a : R := fold_right (fun i sum => lease a i + sum) 0 (seq 0 (servers g)).

  (** A round is paid for if it costs nothing at its worst, or no more than there is. *)
  Definition pays (cost budget : R) : Prop := cost = 0 \/ cost <= budget.

  Definition set_lease a (i : nat) (x : R) : nat -> R := fun j => if Nat.eqb i j then x else lease a j.
  Definition charge_to_bank (i : nat) (k : option nat) : option nat := if is_with i k then None else k.

  (** The books of a history, as they may be kept. *)
  Inductive books : history -> account -> Prop :=
  (** The bank opens with what was granted. *)
  | opens : books [] (Account (reserve m) (fun _ => 0) [])
  (** A round is decided where the bank is, and charged at once. *)
  | decides r h a :
      books h a -> pays (next_worst g m h) (held a - leased a) ->
      books (r :: h) (Account (held a - next_worst g m h) (lease a) (None :: holder a))
  (** A round is decided by a server that holds a lease. *)
  | decides_on_lease r h a i :
      books h a -> (i < servers g)%nat -> pays (next_worst g m h) (lease a i - spent a h i) ->
      books (r :: h) (Account (held a) (lease a) (Some i :: holder a))
  (** A part of the bank that is not leased yet is leased. *)
  | leases h a i x :
      books h a -> (i < servers g)%nat -> 0 <= x <= held a - leased a ->
      books h (Account (held a) (set_lease a i (lease a i + x)) (holder a))
  (** A server hands in: its rounds are charged to the bank, and its lease is over. *)
  | hands_in h a i :
      books h a -> (i < servers g)%nat ->
      books h (Account (held a - spent a h i) (set_lease a i 0) (map (charge_to_bank i) (holder a)))
  (** Rewards have entered, up to some round in the order of decisions, all of whose rounds are charged: they certify a
      slack of x up to there, and those that are still open count at their worst. *)
  | proves h a entered opened charged x :
      books h a -> decision_order h entered ->
      holder a = opened ++ charged -> length charged = length entered -> Forall (eq None) charged ->
      certified g m h entered x ->
      books h (Account (Rmax (held a) (x + reserve m - total is_charged opened h (next_worst g m)))
                 (lease a) (holder a)).
End Books.

(** Every round that is decided was paid for, at its worst, out of books that are in order. *)
Definition rounds_paid_at_worst (g : guard) : Prop :=
  forall m h, In m (metrics g) -> exists a, books g m h a.

(** ** Statement: as long as the bank is right, the books keep the slack of all rounds above what was granted,
    wherever they were decided, whether or not they were handed in. *)

Definition books_keep_the_floor_statement : Prop :=
  forall g m h a, world_is_law g -> rewards_in_bounds g -> baseline_below_ceiling g -> promise_declared g ->
  bet_never_ruined g -> bet_fixed_before_coin g -> no_round_left_out g -> In m (metrics g) ->
  books g m h a -> ever (bank_wrong g m) h = false -> - reserve m <= slack g m h.

(** ** Proofs *)

Section Proof.
  Variable g : guard.
  Variable m : metric (Outcome g).
  Notation history := (list (round (Outcome g))).
  Implicit Types (h : history) (hands : list (option nat)) (a : account).
  Hypothesis slack_at_least : forall h, - next_worst g m h <= next_slack g m h.

  Notation worst := (next_worst g m).
  Notation earned := (next_slack g m).
  Notation total := (total g).

  Lemma worst_is_nonneg h : 0 <= worst h.
  Proof. apply worst_nonneg. Qed.

  Lemma total_at_least whose hands h : - total whose hands h worst <= total whose hands h earned.
  Proof.
    revert h. induction hands as [|k hands IH]; intros [|r h]; simpl; try lra.
    specialize (IH h). specialize (slack_at_least h). destruct (whose k); lra.
  Qed.

  Lemma total_nonneg whose hands h : 0 <= total whose hands h worst.
  Proof.
    revert h. induction hands as [|k hands IH]; intros [|r h]; simpl; try lra.
    specialize (IH h). pose proof (worst_is_nonneg h). destruct (whose k); lra.
  Qed.

  (** Every round is with the bank or with a server. *)
  Lemma slack_splits hands h :
    length hands = length h -> slack g m h = total is_charged hands h earned + total is_leased hands h earned.
  Proof.
    revert h. induction hands as [|k hands IH]; intros [|r h] H; simpl in *; try discriminate; [lra|].
    rewrite (IH h) by congruence. destruct k; simpl; lra.
  Qed.

  Definition hands_known hands := Forall (fun k => forall i, k = Some i -> (i < servers g)%nat) hands.

  Lemma sum_over_servers (f f' : nat -> R) (l : list nat) :
    (forall i, In i l -> f i <= f' i) ->
    fold_right (fun i sum => f i + sum) 0 l <= fold_right (fun i sum => f' i + sum) 0 l.
  Proof.
    intro H. induction l as [|i l IH]; simpl; [lra|].
    specialize (H i (or_introl eq_refl)) as Hi. specialize (IH (fun j Hj => H j (or_intror Hj))). lra.
  Qed.

  Lemma sum_plus (f f' : nat -> R) (l : list nat) :
    fold_right (fun i sum => (f i + f' i) + sum) 0 l
    = fold_right (fun i sum => f i + sum) 0 l + fold_right (fun i sum => f' i + sum) 0 l.
  Proof. induction l as [|i l IH]; simpl; [lra | rewrite IH; lra]. Qed.

  Lemma sum_of_one (i : nat) (c : R) (l : list nat) :
    NoDup l -> In i l -> fold_right (fun j sum => (if Nat.eqb j i then c else 0) + sum) 0 l = c.
  Proof.
    assert (Hnone : forall l, ~ In i l -> fold_right (fun j sum => (if Nat.eqb j i then c else 0) + sum) 0 l = 0).
    { induction l0 as [|j l0 IH]; simpl; intro H; [reflexivity|].
      destruct (Nat.eqb_spec j i) as [->|]; [tauto | rewrite IH by tauto; lra]. }
    intros Hdup Hin. induction l as [|j l IH]; simpl in *; [contradiction|]. inversion Hdup; subst.
    destruct (Nat.eqb_spec j i) as [->|].
    - rewrite Hnone by assumption. lra.
    - rewrite IH by (tauto || assumption). lra.
  Qed.

  Lemma leased_rounds_by_server hands h :
    hands_known hands ->
    total is_leased hands h worst
    = fold_right (fun i sum => total (is_with i) hands h worst + sum) 0 (seq 0 (servers g)).
  Proof.
    revert h. induction hands as [|k hands IH]; intros h Hk.
    - simpl. clear. induction (seq 0 (servers g)); simpl; [reflexivity | lra].
    - inversion Hk as [|? ? Hki Hk']; subst. destruct h as [|r h].
      + simpl. clear. induction (seq 0 (servers g)); simpl; [reflexivity | lra].
      + simpl. rewrite sum_plus, <- IH by exact Hk'. f_equal. destruct k as [i|]; simpl.
        * rewrite (sum_of_one i); [reflexivity | apply seq_NoDup | apply in_seq; specialize (Hki i eq_refl); lia].
        * clear. induction (seq 0 (servers g)); simpl; [reflexivity | lra].
  Qed.

  Lemma leased_after_set a i x :
    (i < servers g)%nat -> leased g (Account (held a) (set_lease a i x) (holder a)) = leased g a - lease a i + x.
  Proof.
    intro Hi. unfold leased. simpl.
    assert (H : forall l, NoDup l -> In i l ->
      fold_right (fun j sum => set_lease a i x j + sum) 0 l
      = fold_right (fun j sum => lease a j + sum) 0 l - lease a i + x).
    { assert (Hno : forall l, ~ In i l -> fold_right (fun j sum => set_lease a i x j + sum) 0 l
        = fold_right (fun j sum => lease a j + sum) 0 l).
      { induction l as [|j l IH]; simpl; intro H; [reflexivity|]. rewrite IH by tauto. unfold set_lease at 1.
        destruct (Nat.eqb_spec i j); [subst; tauto | reflexivity]. }
      induction l as [|j l IH]; simpl; intros Hd Hin; [contradiction|]. inversion Hd; subst.
      unfold set_lease at 1. destruct (Nat.eqb_spec i j) as [->|].
      - rewrite Hno by assumption. lra.
      - rewrite IH; [lra | assumption | destruct Hin; [congruence | assumption]]. }
    rewrite H; [reflexivity | apply seq_NoDup | apply in_seq; lia].
  Qed.

  (** Handing in moves a server's rounds to the bank. *)
  Lemma charged_after_hand_in i hands h f :
    total is_charged (map (charge_to_bank i) hands) h f = total is_charged hands h f + total (is_with i) hands h f.
  Proof.
    revert h. induction hands as [|k hands IH]; intros [|r h]; simpl; try lra. rewrite IH.
    unfold charge_to_bank. destruct k as [j|]; simpl; [|lra]. destruct (Nat.eqb i j); simpl; lra.
  Qed.

  Lemma with_after_hand_in i j hands h f :
    total (is_with j) (map (charge_to_bank i) hands) h f
    = if Nat.eqb i j then 0 else total (is_with j) hands h f.
  Proof.
    revert h. induction hands as [|k hands IH]; intros [|r h]; simpl; try (destruct (Nat.eqb i j); reflexivity).
    rewrite IH. unfold charge_to_bank. destruct k as [n|]; simpl; [|destruct (Nat.eqb i j); lra].
    destruct (Nat.eqb_spec i n), (Nat.eqb_spec i j), (Nat.eqb_spec j n); simpl; subst; try lra; try congruence;
      rewrite ?Nat.eqb_refl; try lra.
    all: destruct (Nat.eqb_spec j n); try congruence; lra.
  Qed.

  Lemma total_app whose opened charged newer entered f :
    length opened = length newer ->
    total whose (opened ++ charged) (newer ++ entered) f
    = total whose opened (newer ++ entered) f + total whose charged entered f.
  Proof.
    revert newer. induction opened as [|k opened IH]; intros [|r newer] H; simpl in *; try discriminate; [lra|].
    rewrite IH by congruence. lra.
  Qed.

  Lemma all_charged charged entered :
    length charged = length entered -> Forall (eq None) charged ->
    total is_charged charged entered earned = slack g m entered.
  Proof.
    revert entered. induction charged as [|k charged IH]; intros [|r entered] H Hall; simpl in *; try discriminate.
    - reflexivity.
    - inversion Hall; subst. simpl. rewrite IH by (congruence || assumption). lra.
  Qed.

  (** What the books say is true as long as the certificates are. *)
  Definition in_order h a : Prop :=
    length (holder a) = length h /\ hands_known (holder a) /\
    held a <= reserve m + total is_charged (holder a) h earned /\
    (forall i, (i < servers g)%nat -> spent g m a h i <= lease a i) /\
    leased g a <= held a.

  Hypothesis reserve_nonneg : 0 <= reserve m.
  Hypothesis certificates : forall now h x,
    decision_order now h -> certified g m now h x -> ever (bank_wrong g m) now = false -> x <= slack g m h.

  Lemma books_are_in_order h a : books g m h a -> ever (bank_wrong g m) h = false -> in_order h a.
  Proof.
    induction 1 as [|r h a Ha IH Hpays|r h a i Ha IH Hi Hpays|h a i x Ha IH Hi Hx|h a i Ha IH Hi
      |h a entered opened charged x Ha IH Horder Hhands Hlength Hcharged Hcert]; intro Hgood.
    - repeat split; simpl; try lra; [constructor | intros; unfold spent; simpl; lra|].
      unfold leased. simpl. clear -reserve_nonneg.
      enough (fold_right (fun (i : nat) sum => 0 + sum) 0 (seq 0 (servers g)) = 0) by lra.
      induction (seq 0 (servers g)); simpl; lra.
    - assert (Hgood' : ever (bank_wrong g m) h = false) by (simpl in Hgood; apply Bool.orb_false_iff in Hgood; tauto).
      destruct (IH Hgood') as (H1 & H2 & H3 & H4 & H5). specialize (slack_at_least h). pose proof (worst_is_nonneg h).
      repeat split; simpl.
      + congruence.
      + constructor; [discriminate | exact H2].
      + lra.
      + intros j Hj. unfold spent. simpl. rewrite Rplus_0_l. apply H4; exact Hj.
      + unfold leased in *. simpl. destruct Hpays; lra.
    - assert (Hgood' : ever (bank_wrong g m) h = false) by (simpl in Hgood; apply Bool.orb_false_iff in Hgood; tauto).
      destruct (IH Hgood') as (H1 & H2 & H3 & H4 & H5).
      repeat split; simpl.
      + congruence.
      + constructor; [intros ? [= <-]; exact Hi | exact H2].
      + lra.
      + intros j Hj. unfold spent. simpl. specialize (H4 j Hj) as Hj'. destruct (Nat.eqb_spec j i) as [->|].
        * fold (spent g m a h i). destruct Hpays; lra.
        * rewrite Rplus_0_l. exact Hj'.
      + exact H5.
    - destruct (IH Hgood) as (H1 & H2 & H3 & H4 & H5). repeat split; try assumption.
      + intros j Hj. unfold spent. simpl. unfold set_lease. specialize (H4 j Hj) as Hj'. unfold spent in Hj'.
        destruct (Nat.eqb_spec i j) as [->|]; lra.
      + rewrite leased_after_set by exact Hi. simpl. lra.
    - destruct (IH Hgood) as (H1 & H2 & H3 & H4 & H5). repeat split; simpl.
      + rewrite map_length. exact H1.
      + unfold hands_known in *. rewrite Forall_forall in *. intros k Hk j ->. apply in_map_iff in Hk.
        destruct Hk as [k' [Hk' Hin]]. apply (H2 k' Hin). unfold charge_to_bank in Hk'.
        destruct (is_with i k'); [discriminate | exact Hk'].
      + rewrite charged_after_hand_in. pose proof (total_at_least (is_with i) (holder a) h). unfold spent. lra.
      + intros j Hj. unfold spent. simpl. rewrite with_after_hand_in. unfold set_lease.
        destruct (Nat.eqb_spec i j); [lra | apply H4; exact Hj].
      + pose proof (leased_after_set a i 0 Hi) as H6. unfold leased in *. simpl in *. rewrite H6.
        specialize (H4 i Hi). lra.
    - destruct (IH Hgood) as (H1 & H2 & H3 & H4 & H5). repeat split; simpl; try assumption.
      + apply Rmax_lub; [exact H3|].
        assert (Hx : x <= slack g m entered) by (apply (certificates h); assumption).
        destruct Horder as [newer ->].
        assert (Ho : length opened = length newer).
        { rewrite Hhands in H1. rewrite !app_length in H1. lia. }
        rewrite Hhands, (total_app _ _ _ _ _ _ Ho), (all_charged _ _ Hlength Hcharged).
        pose proof (total_at_least is_charged opened (newer ++ entered)). lra.
      + apply Rle_trans with (held a); [exact H5 | apply Rmax_l].
  Qed.

  Lemma order_keeps_the_floor h a : in_order h a -> - reserve m <= slack g m h.
  Proof.
    intros (H1 & H2 & H3 & H4 & H5). rewrite (slack_splits (holder a)) by exact H1.
    pose proof (total_at_least is_leased (holder a) h) as H6.
    rewrite (leased_rounds_by_server _ _ H2) in H6.
    pose proof (sum_over_servers (fun i => total (is_with i) (holder a) h worst) (lease a) (seq 0 (servers g))) as H7.
    assert (H8 : forall i, In i (seq 0 (servers g)) -> total (is_with i) (holder a) h worst <= lease a i)
      by (intros i Hi; apply H4; apply in_seq in Hi; lia).
    specialize (H7 H8). unfold leased in H5. lra.
  Qed.
End Proof.

Theorem books_keep_the_floor : books_keep_the_floor_statement.
Proof.
  intros g m h a Hlaw Hbounds Hmost Hdecl Hruin Hfixed Hentered Hm Hbooks Hgood.
  assert (Hworst : forall h, - next_worst g m h <= next_slack g m h).
  { intro h'. apply worst_is_worst.
    - apply mean_within; [apply Hlaw | intro; apply Hbounds; exact Hm].
    - split; [|apply Hmost; exact Hm].
      apply (mean_within (chance g h') (fun r => reward m (baseline r)) (low m) 1); [apply Hlaw|].
      intro; apply Hbounds; exact Hm. }
  apply (order_keeps_the_floor g m Hworst h a). apply books_are_in_order; try assumption.
  - apply (Hdecl m Hm).
  - intros. eapply certificate_is_true; eassumption.
Qed.
