PRAGMA page_size=4096;
BEGIN TRANSACTION;
DROP TABLE IF EXISTS api_keys;
CREATE TABLE api_keys (
            digest TEXT PRIMARY KEY, tenant TEXT NOT NULL, role TEXT NOT NULL, label TEXT NOT NULL,
            created_at REAL NOT NULL, revoked_at REAL) STRICT;
INSERT INTO api_keys VALUES('0000000000000000000000000000000000000000000000000000000000000000','local','admin','first',1000003.0,NULL);
DROP TABLE IF EXISTS changed;
CREATE TABLE changed (
            experiment INTEGER NOT NULL, seq INTEGER NOT NULL, kind TEXT NOT NULL,
            content TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (experiment, seq)) WITHOUT ROWID, STRICT;
DROP TABLE IF EXISTS decided;
CREATE TABLE decided (
            experiment INTEGER NOT NULL, seq INTEGER NOT NULL, mode TEXT NOT NULL, available TEXT,
            exploit INTEGER, explore INTEGER, propensity REAL, weight REAL, round INTEGER NOT NULL,
            version INTEGER NOT NULL, stream BLOB NOT NULL, made_at REAL NOT NULL, expires_at REAL,
            PRIMARY KEY (experiment, seq)) WITHOUT ROWID, STRICT;
INSERT INTO decided VALUES(1,1,'both',NULL,1,0,0.4737741419487083,2.110710381716573,1,0,X'586E327C01F7D0EA7A037EF9F0C47908',1000000.0,1003600.0);
INSERT INTO decided VALUES(1,2,'both',NULL,2,0,0.4737741419487083,2.110710381716573,1,0,X'65AC16F55BE520A7052F80CB748877C7',1000000.0,1003600.0);
INSERT INTO decided VALUES(1,3,'both',NULL,0,0,0.4737741419487083,2.110710381716573,1,0,X'11473439FA1FE0EC14363644D792D19C',1000000.0,1003600.0);
INSERT INTO decided VALUES(1,4,'both',NULL,1,0,0.4737741419487083,2.110710381716573,1,0,X'BA929BE4B5AA1E9EB3C3641AD51ED42A',1000000.0,1003600.0);
INSERT INTO decided VALUES(1,5,'both',NULL,0,1,0.29845900716852963,3.3505438803370877,1,0,X'C9C3299384BABFD3CFADCE6968810285',1000000.0,1003600.0);
INSERT INTO decided VALUES(1,6,'both',NULL,1,2,0.2277668508827619,4.390454520156353,1,0,X'EBA5F3161960218C6D9A20281E959EF0',1000000.0,1003600.0);
INSERT INTO decided VALUES(1,7,'both',NULL,2,2,0.2277668508827619,4.390454520156353,1,0,X'A5C8533BB681AF284644C49105CC20F6',1000000.0,1003600.0);
INSERT INTO decided VALUES(1,8,'both',NULL,0,0,0.4737741419487083,2.110710381716573,1,0,X'F42A08086D77130D54B7F42E69780FCF',1000000.0,1003600.0);
INSERT INTO decided VALUES(1,12,'exploit',NULL,1,NULL,NULL,NULL,4,11,X'F878C018ABB13C50C4C8624692393C85',1000003.0,NULL);
INSERT INTO decided VALUES(1,13,'exploit',NULL,1,NULL,NULL,NULL,4,11,X'D6FDE8283374F757711D63FB9348725F',1000003.0,NULL);
INSERT INTO decided VALUES(1,14,'explore','[0,2]',NULL,0,0.6135117904356906,1.6299605249474367,4,11,X'A7BC61CCE362EC8FC3B5A0C62B5EF885',1000003.0,1003603.0);
INSERT INTO decided VALUES(1,15,'explore','[0,2]',NULL,0,0.6135117904356906,1.6299605249474367,4,11,X'F38D6775468EDEB51C907BD492401989',1000003.0,1003603.0);
DROP TABLE IF EXISTS experiments;
CREATE TABLE experiments (
            id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, tag TEXT NOT NULL UNIQUE,
            settings TEXT NOT NULL, seed TEXT NOT NULL, created_at REAL NOT NULL, archived_at REAL,
            arms TEXT NOT NULL, retired TEXT NOT NULL,
            head INTEGER NOT NULL, version INTEGER NOT NULL, late INTEGER NOT NULL,
            UNIQUE (tenant, name)) STRICT;
INSERT INTO experiments VALUES(1,'local','first','00c0ffee00c0ffee','{"arms": ["a", "b", "c"], "deadline": 3600.0, "expired_loss": null, "loss_range": [0.0, 1.0], "policy": {"alpha": 3.0, "c": 2.0, "c_exploit": null, "estimator": "importance", "kappa": 0.1, "lam": 0.05, "name": "FTPL", "ranking": "improved"}}','7',1000000.0,NULL,'["a", "b", "c"]','[]',16,16,0);
DROP TABLE IF EXISTS request_keys;
CREATE TABLE request_keys (
            experiment INTEGER NOT NULL, key TEXT NOT NULL, request TEXT NOT NULL,
            first INTEGER NOT NULL, size INTEGER NOT NULL, at REAL NOT NULL,
            PRIMARY KEY (experiment, key)) WITHOUT ROWID, STRICT;
INSERT INTO request_keys VALUES(1,'again','fbb56160048dde2a00c7fb8c53240f69',1,2,1000000.0);
CREATE INDEX request_keys_by_age ON request_keys (at);
DROP TABLE IF EXISTS schema_migrations;
CREATE TABLE schema_migrations (version INTEGER PRIMARY KEY, at REAL NOT NULL) STRICT;
INSERT INTO schema_migrations VALUES(1,1000000.0);
DROP TABLE IF EXISTS settled;
CREATE TABLE settled (
            experiment INTEGER NOT NULL, seq INTEGER NOT NULL, decision INTEGER NOT NULL,
            kind TEXT NOT NULL, loss REAL, at REAL NOT NULL, late_at REAL,
            PRIMARY KEY (experiment, decision)) WITHOUT ROWID, STRICT;
INSERT INTO settled VALUES(1,10,4,'observed',0.125,1000002.0,NULL);
INSERT INTO settled VALUES(1,11,6,'observed',0.375,1000003.0,NULL);
INSERT INTO settled VALUES(1,9,8,'observed',0.625,1000001.0,NULL);
INSERT INTO settled VALUES(1,16,14,'observed',0.0,1000003.0,NULL);
CREATE UNIQUE INDEX settled_in_order ON settled (experiment, seq);
DROP TABLE IF EXISTS snapshots;
CREATE TABLE snapshots (
            experiment INTEGER NOT NULL, seq INTEGER NOT NULL, content TEXT NOT NULL, at REAL NOT NULL,
            base INTEGER NOT NULL, PRIMARY KEY (experiment, seq)) STRICT;
INSERT INTO snapshots VALUES(1,11,'{"format":"decoupled-experiment","version":1,"content":{"head":11,"version":11,"last_at":1000003.0,"archived_at":null,"names":["a","b","c"],"retired":[],"tallies":{"exploit":[3,3,2],"explore":[5,1,2],"decisions":8,"applied":3,"expired":0,"sums":[1.5830327862874296,0.0,1.6464204450586322],"squares":[1.8098836906662368,0.0,2.7107002819070645],"shared":[1.740272779486766,0.0,0.0],"used":1.319193988572858,"used_squares":1.740272779486766,"compared":3,"exploited":[1,2,0],"explored":[2,0,1],"both":[1,0,0],"blind":false},"pending":[1,2,3,5,7],"learner":"{\"format\":\"decoupled-learner\",\"version\":1,\"content\":{\"policy\":{\"name\":\"FTPL\",\"alpha\":3.0,\"c\":2.0,\"ranking\":\"improved\",\"estimator\":\"importance\",\"c_exploit\":null,\"kappa\":0.1,\"lam\":0.05,\"schedule\":\"rounds\"},\"arms\":[\"a\",\"b\",\"c\"],\"loss_range\":[0.0,1.0],\"max_pending\":1000000000,\"round\":4,\"learned\":{\"estimates\":[1.5830327862874296,0.0,1.6464204450586322]},\"stream\":[\"0x503cb1ab18c078f8\",\"0x853c39924662c8c4\"],\"tag\":\"623a8c4b6745\",\"made\":8,\"forgotten\":0,\"baselines\":[],\"pending\":[[\"623a8c4b6745-1\",1,\"b\",\"a\",0.4737741419487083,2.110710381716573,0,null],[\"623a8c4b6745-2\",1,\"c\",\"a\",0.4737741419487083,2.110710381716573,0,null],[\"623a8c4b6745-3\",1,\"a\",\"a\",0.4737741419487083,2.110710381716573,0,null],[\"623a8c4b6745-5\",1,\"a\",\"b\",0.29845900716852963,3.3505438803370877,1,null],[\"623a8c4b6745-7\",1,\"c\",\"c\",0.2277668508827619,4.390454520156353,2,null]]},\"checksum\":\"e23cf225da9fca5a04a92313c6d181dc07889fd0094b92d05a233fb3931479c8\"}"},"checksum":"8d403746f6d35cf90c2cdd9beb4b749cb77642632c546f0363421c55ccb45944"}',1000003.0,0);
COMMIT TRANSACTION;
