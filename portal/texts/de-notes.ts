/** Notes of fields in German, by the description in the API. `test/portal/notes.test.ts` names those that are
 *  missing. */
export const notes: Readonly<Record<string, string>> = {
  '16 to 28 bits in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 or 100.64.0.0/10. Defaults to a free /24.':
    '16 bis 28 Bit in 10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16 oder 100.64.0.0/10. Vorgabe ist ein freies /24.',
  'A region of the offer. Defaults to its first region.': 'Eine Region des Angebots. Vorgabe ist seine erste.',
  'A zone other than that of the image.': 'Eine andere Zone als die des Abbilds.',
  'A zone that offers dev clusters.': 'Eine Zone, die Dev-Cluster anbietet.',
  'Access key of the bucket.': 'Zugangsschlüssel des Buckets.',
  'Additional private network of its server, in the same zone.':
    'Ein weiteres privates Netz seines Servers, in derselben Zone.',
  'Address of the collector, or endpoint of the store of the bucket: https, at a public address.':
    'Adresse des Sammlers oder Endpunkt des Buckets: https, öffentlich erreichbar.',
  'Addresses of at most 4 DNS servers for servers of the network.':
    'Adressen von höchstens 4 DNS-Servern für Server des Netzes.',
  'An IPv4 host of the network, or an IPv6 address.': 'Ein IPv4-Host des Netzes oder eine IPv6-Adresse.',
  'At least the size of the source, which is the default; required without a source.':
    'Mindestens die Größe der Quelle, die auch Vorgabe ist; ohne Quelle nötig.',
  'At least.': 'Mindestens.',
  'Backup in the zone, including those of deleted storages.':
    'Eine Sicherung in der Zone, auch die von gelöschten Speichern.',
  'Default zone of its nodes; its region hosts the control plane.':
    'Zone seiner Knoten, wenn sie keine andere nennen. In ihrer Region läuft die Steuerungsebene.',
  'Defaults to database_name.': 'Vorgabe ist der Name der Datenbank in PostgreSQL.',
  'Defaults to the name of the network with the suffix -edge.': 'Vorgabe ist der Name des Netzes mit dem Zusatz -edge.',
  'Defaults to the network of the original database.': 'Vorgabe ist das Netz der ursprünglichen Datenbank.',
  'Defaults to the newest offered version.': 'Vorgabe ist die neueste angebotene Version.',
  'Defaults to the plan of the original database.': 'Vorgabe ist der Tarif der ursprünglichen Datenbank.',
  'Defaults to the size of the original database.': 'Vorgabe ist die Größe der ursprünglichen Datenbank.',
  'Defaults to the version with is_default.': 'Vorgabe ist die übliche Version.',
  'Display name; the host of the address when it is left out.': 'Anzeigename. Ohne ihn ist es der Host der Adresse.',
  'Group whose other members are placed apart from the server. The server stays in it until it is deleted.':
    'Eine Gruppe, deren andere Mitglieder getrennt vom Server laufen. Er bleibt darin, bis er gelöscht wird.',
  'HTTPS URL on the public Internet of a raw or qcow2 disk. The disk must not depend on another file.':
    'Öffentliche HTTPS-Adresse einer Platte im Format raw oder qcow2, die von keiner anderen Datei abhängt.',
  'Init script of the account whose current text becomes the user data; cannot be combined with user_data.':
    'Ein Init-Skript des Kontos, dessen jetziger Text beim ersten Start läuft.',
  ['Init script of the account whose current text becomes the user data; cannot be combined with ' +
    'user_data. Without both, the user data stays unchanged; null removes it.']:
    'Ein Init-Skript des Kontos, dessen jetziger Text beim ersten Start läuft. Ohne es bleibt, was war.',
  'Keys that may sign in to its bastion. Defaults to all keys of the account.':
    'Schlüssel, die sich an seiner Bastion anmelden dürfen. Vorgabe sind alle des Kontos.',
  'Keys that may sign in to its bastion; they replace the current ones.':
    'Schlüssel, die sich an seiner Bastion anmelden dürfen. Sie ersetzen die jetzigen.',
  'Labels of its nodes in the cluster.': 'Labels seiner Knoten im Cluster.',
  'Minimum, in units of 10^9 bytes and before any replication.':
    'Mindestens, in Einheiten von 10^9 Bytes und vor jeder Replikation.',
  'Minor version for its nodes, at most that of the control plane. A change replaces the nodes.':
    'Nebenversion seiner Knoten, höchstens die der Steuerungsebene. Eine Änderung ersetzt die Knoten.',
  'Name of the bucket. Where bucket_prefix is not null, it begins with that prefix.':
    'Name des Buckets. Wo bucket_prefix nicht null ist, beginnt er damit.',
  'Name of the bucket, for the type s3.': 'Name des Buckets.',
  'Name of the database in PostgreSQL.': 'Name der Datenbank in PostgreSQL.',
  'Name of the quota.': 'Name des Kontingents.',
  'Networks to attach at creation: in its zone, attached to no other router, not overlapping.':
    'Netze, die gleich verbunden werden: in seiner Zone, an keinem anderen Router, ohne Überschneidung.',
  'Not available: true is refused.': 'Nicht verfügbar.',
  'Note for the audit log.': 'Eine Notiz für das Audit-Log.',
  'Notes for staff.': 'Hinweise für unsere Mitarbeiter.',
  'Number of nodes.': 'Anzahl der Knoten.',
  'Optional with a source: defaults to the zone of the source.': 'Mit einer Quelle ist die Vorgabe deren Zone.',
  'PEM of the unencrypted private key. It is stored encrypted and never returned.':
    'Der unverschlüsselte private Schlüssel als PEM. Er wird verschlüsselt gespeichert und nie gezeigt.',
  'PEM: the server certificate first, then the certificates that signed it.':
    'PEM: zuerst das Zertifikat des Servers, dann die, mit denen es signiert ist.',
  'Plan of each of its two machines. Defaults to the smallest.':
    'Tarif jeder seiner beiden Maschinen. Vorgabe ist der kleinste.',
  'Plan of its machines. Defaults to the cheapest suitable plan.':
    'Tarif seiner Maschinen. Vorgabe ist der günstigste passende.',
  'Plan of its server; it must have enough memory.': 'Tarif seines Servers, mit genug Arbeitsspeicher.',
  'Plan of its servers.': 'Tarif seiner Server.',
  'Port of the member.': 'Port des Mitglieds.',
  'Private network of its members.': 'Privates Netz seiner Mitglieder.',
  'Private network of the account, in the zone of the server.': 'Privates Netz des Kontos, in der Zone des Servers.',
  'Private networks to attach the server to, at most 7.': 'Private Netze für den Server, höchstens 7.',
  'Region of the members, for the spread zone.': 'Region der Mitglieder, wenn sie in mehreren Zonen laufen.',
  'Region that requests to the bucket are signed for.': 'Region, für die Anfragen an den Bucket signiert werden.',
  'Relative share of the traffic. With 0 it receives no new clients but keeps those whose cookie names it.':
    'Anteil am Verkehr. Mit 0 kommen keine neuen Clients; die mit seinem Cookie bleiben.',
  'Requested region; any when omitted.': 'Gewünschte Region. Ohne Angabe jede.',
  'Restore the backup although its verification failed.': 'Die Sicherung trotz fehlgeschlagener Prüfung benutzen.',
  'Roles of the edge.': 'Rollen des Edge.',
  'SHA-256 of the file at source_url, in hex; required with source_url.': 'SHA-256 der Datei, hexadezimal.',
  'SSH keys of the account. Defaults to all of them when neither ssh_keys nor ssh_key_ids is given.':
    'SSH-Schlüssel des Kontos. Vorgabe sind alle.',
  'SSH keys of the account. The keys stay unchanged when neither ssh_keys nor ssh_key_ids is given.':
    'SSH-Schlüssel des Kontos. Ohne Angabe bleiben sie, wie sie sind.',
  'Schedule of snapshots: five cron fields, in UTC.': 'Zeitplan der Snapshots: fünf Felder von cron, in UTC.',
  'Script for cloud-init at first boot, or a document that starts with #cloud-config. At most 32768 bytes.':
    'Ein Skript für cloud-init beim ersten Start oder ein Dokument, das mit #cloud-config beginnt. ' +
    'Höchstens 32768 Bytes.',
  'Secret of the access key. It is never shown.': 'Geheimnis des Zugangsschlüssels. Es wird nie gezeigt.',
  'Sequence number of the entry after which the first batch starts; 0 for the complete log.':
    'Nummer des Eintrags, nach dem das erste Paket beginnt; 0 für das ganze Audit-Log.',
  ['public: the public IPv4 address of the server. private:<network_id>: its interface in that network, which ' +
    'must have a router with NAT.']:
    'Die öffentliche IPv4-Adresse des Servers, oder seine Schnittstelle in einem Netzwerk, dessen Router NAT hat.',
  'Server in the zone to assign it to; unassigned when null or omitted.':
    'Ein Server in der Zone, dem sie zugewiesen wird. Ohne Angabe keinem.',
  'Server in the zone to assign it to; unassigned when omitted.':
    'Ein Server in der Zone, dem sie zugewiesen wird. Ohne Angabe keinem.',
  'Server in the zone to attach it to at creation.': 'Ein Server in der Zone, an den er gleich angehängt wird.',
  'Size of the boot storage: at least the size of the plan, which is the default.':
    'Größe des Startspeichers: mindestens die des Tarifs, die auch Vorgabe ist.',
  'Snapshot of a storage in the zone; its server may run.':
    'Snapshot eines Speichers in der Zone. Sein Server darf laufen.',
  'Start of the names of objects, for the type s3.': 'Anfang der Namen von Objekten.',
  'Storage in the zone; its server must be stopped until the image is complete.':
    'Ein Speicher in der Zone. Sein Server muss gestoppt sein, bis das Abbild fertig ist.',
  'Template for the boot storage.': 'Vorlage für den Startspeicher.',
  'Template for the boot storage; unchanged when neither this nor custom_image_id is given.':
    'Vorlage für den Startspeicher. Ohne Angabe bleibt sie, wie sie ist.',
  'The next minor version, or the current one for the newest patch release.':
    'Die nächste Nebenversion, oder die jetzige mit den neuesten Korrekturen.',
  'Time to restore to; null for the latest.': 'Zeitpunkt, auf den wiederhergestellt wird. Leer ist der neueste.',
  ['Types of events that are sent; * is any: server.state, server.*, *.deleted, ' +
    'operation.finished. Events of billing must be named.']:
    'Arten von Ereignissen, * für alle: server.state, server.*, *.deleted, operation.finished. Die ' +
    'der Abrechnung müssen genannt sein.',
  'Unique among the certificates of the load balancer.': 'Eindeutig unter den Zertifikaten des Lastverteilers.',
  'Unique among the load balancers of the account in the zone.':
    'Eindeutig unter den Lastverteilern des Kontos in der Zone.',
  'Unique among the members of the backend.': 'Eindeutig unter den Mitgliedern des Backends.',
  'Unique among the networks of the account in the zone.': 'Eindeutig unter den Netzen des Kontos in der Zone.',
  'Unique among the routers of the account in the zone.': 'Eindeutig unter den Routern des Kontos in der Zone.',
  'Unique in the account and zone.': 'Eindeutig im Konto und in der Zone.',
  'Unique in the account.': 'Eindeutig im Konto.',
  'What it sends to: a collector by HTTPS, or a bucket.':
    'Wohin es sendet: an einen Sammler mit HTTPS oder in einen Bucket.',
  'Where events are sent: https, at a public address, without credentials.':
    'Wohin Ereignisse gesendet werden: https, öffentlich erreichbar, ohne Zugangsdaten.',
  'Whether a started server may be stopped for it; it is started again at the end.':
    'Ob ein laufender Server dafür gestoppt werden darf. Am Ende startet er wieder.',
  'Whether batches are sent.': 'Ob Pakete gesendet werden.',
  'Whether deletion is refused.': 'Ob das Löschen abgelehnt wird.',
  'Whether events are sent.': 'Ob Ereignisse gesendet werden.',
  'Whether it has public addresses: IPv4, and IPv6 where the zone has it.':
    'Ob er öffentliche Adressen hat: IPv4, und IPv6, wo es die Zone hat.',
  'Whether it receives traffic and health checks.': 'Ob es Verkehr und Prüfungen bekommt.',
  'Whether servers of its networks can reach external networks. The router gets a public address for this.':
    'Ob Server seiner Netze nach außen kommen. Der Router bekommt dafür eine öffentliche Adresse.',
  ['Whether to assign a public IPv4 address, which is billed in addition to the plan. In a zone ' +
    'with public IPv6 every server gets a /64.']:
    'Ob er eine öffentliche IPv4-Adresse bekommt, die zusätzlich berechnet wird. In einer Zone mit ' +
    'IPv6 hat jeder Server ein /64.',
  'Whether to grow the boot storage to the size of the plan. It never shrinks.':
    'Ob der Startspeicher auf die Größe des Tarifs wächst. Er schrumpft nie.',
  'Whether to refuse a server rather than place it with another member. Defaults to false.':
    'Ob ein Server eher abgelehnt wird, als neben einem anderen Mitglied zu laufen.',
  'Whether to remove the disk from a guest that does not release it.':
    'Ob die Platte einem Gast weggenommen wird, der sie nicht freigibt.',
  'Whether to start the server afterwards; it stays stopped by default.':
    'Ob der Server danach startet. Sonst bleibt er gestoppt.',
  'Zone of the members. With spread zone, it may name a zone instead of its region.':
    'Zone der Mitglieder. Laufen sie in mehreren Zonen, kann sie statt der Region genannt werden.',
  'Zone of the region, for a stopped server; null or absent for another node in the same zone.':
    'Eine Zone der Region, für einen gestoppten Server. Ohne Angabe ein anderer Host derselben Zone.',
  'host for different nodes, rack for different racks of the zone, zone for different zones of the region.':
    'Ob sie auf verschiedenen Hosts, in verschiedenen Racks der Zone oder in verschiedenen Zonen der Region laufen.',
  'separate: one machine per role; combined: one machine for all. Defaults to separate when the zone offers it.':
    'Eine Maschine je Rolle, oder eine für alle. Vorgabe ist getrennt, wo die Zone es anbietet.',
  'soft asks the guest to shut down, hard cuts the power.':
    'Sanft bittet den Gast, herunterzufahren; hart nimmt ihm den Strom.',
  'standard survives the loss of its host in zones with shared storage; local-nvme is on the disks of one host.':
    'standard übersteht in Zonen mit geteiltem Speicher den Ausfall des Hosts; local-nvme ist auf ' +
    'den Platten eines Hosts.',
}
