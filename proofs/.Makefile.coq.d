Laws.vo Laws.glob Laws.v.beautified Laws.required_vo: Laws.v 
Laws.vio: Laws.v 
Laws.vos Laws.vok Laws.required_vos: Laws.v 
Game.vo Game.glob Game.v.beautified Game.required_vo: Game.v Laws.vo
Game.vio: Game.v Laws.vio
Game.vos Game.vok Game.required_vos: Game.v Laws.vos
Order.vo Order.glob Order.v.beautified Order.required_vo: Order.v Game.vo
Order.vio: Order.v Game.vio
Order.vos Order.vok Order.required_vos: Order.v Game.vos
Bets.vo Bets.glob Bets.v.beautified Bets.required_vo: Bets.v Order.vo
Bets.vio: Bets.v Order.vio
Bets.vos Bets.vok Bets.required_vos: Bets.v Order.vos
Guard.vo Guard.glob Guard.v.beautified Guard.required_vo: Guard.v Bets.vo
Guard.vio: Guard.v Bets.vio
Guard.vos Guard.vok Guard.required_vos: Guard.v Bets.vos
Bank.vo Bank.glob Bank.v.beautified Bank.required_vo: Bank.v Guard.vo
Bank.vio: Bank.v Guard.vio
Bank.vos Bank.vok Bank.required_vos: Bank.v Guard.vos
Leases.vo Leases.glob Leases.v.beautified Leases.required_vo: Leases.v Bank.vo
Leases.vio: Leases.v Bank.vio
Leases.vos Leases.vok Leases.required_vos: Leases.v Bank.vos
Promise.vo Promise.glob Promise.v.beautified Promise.required_vo: Promise.v Leases.vo
Promise.vio: Promise.v Leases.vio
Promise.vos Promise.vok Promise.required_vos: Promise.v Leases.vos
Bennett.vo Bennett.glob Bennett.v.beautified Bennett.required_vo: Bennett.v 
Bennett.vio: Bennett.v 
Bennett.vos Bennett.vok Bennett.required_vos: Bennett.v 
Played.vo Played.glob Played.v.beautified Played.required_vo: Played.v Promise.vo Bennett.vo
Played.vio: Played.v Promise.vio Bennett.vio
Played.vos Played.vok Played.required_vos: Played.v Promise.vos Bennett.vos
Attacks.vo Attacks.glob Attacks.v.beautified Attacks.required_vo: Attacks.v Promise.vo
Attacks.vio: Attacks.v Promise.vio
Attacks.vos Attacks.vok Attacks.required_vos: Attacks.v Promise.vos
Wrong.vo Wrong.glob Wrong.v.beautified Wrong.required_vo: Wrong.v Attacks.vo
Wrong.vio: Wrong.v Attacks.vio
Wrong.vos Wrong.vok Wrong.required_vos: Wrong.v Attacks.vos
Vectors.vo Vectors.glob Vectors.v.beautified Vectors.required_vo: Vectors.v 
Vectors.vio: Vectors.v 
Vectors.vos Vectors.vok Vectors.required_vos: Vectors.v 
Checker.vo Checker.glob Checker.v.beautified Checker.required_vo: Checker.v Vectors.vo
Checker.vio: Checker.v Vectors.vio
Checker.vos Checker.vok Checker.required_vos: Checker.v Vectors.vos
Exponential.vo Exponential.glob Exponential.v.beautified Exponential.required_vo: Exponential.v 
Exponential.vio: Exponential.v 
Exponential.vos Exponential.vok Exponential.required_vos: Exponential.v 
Certificate.vo Certificate.glob Certificate.v.beautified Certificate.required_vo: Certificate.v Checker.vo Exponential.vo Promise.vo
Certificate.vio: Certificate.v Checker.vio Exponential.vio Promise.vio
Certificate.vos Certificate.vok Certificate.required_vos: Certificate.v Checker.vos Exponential.vos Promise.vos
Extraction.vo Extraction.glob Extraction.v.beautified Extraction.required_vo: Extraction.v Checker.vo Certificate.vo
Extraction.vio: Extraction.v Checker.vio Certificate.vio
Extraction.vos Extraction.vok Extraction.required_vos: Extraction.v Checker.vos Certificate.vos
