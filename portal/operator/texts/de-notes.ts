/** Notes of fields of operators in German, by the description in the API. */
export const operatorNotes: Readonly<Record<string, string>> = {
  'A region without a host.': 'Eine Region, die noch keinen hat.',
  'Accepted only while the node has no servers.': 'Nur möglich, solange der Knoten keine Server hat.',
  'Account whose servers alone are placed on it.': 'Konto, dessen Server allein darauf laufen.',
  'Address of the host for operators.': 'Adresse des Hosts für Betreiber.',
  'Defaults to one day, counted from the announced hour.': 'Vorgabe ist ein Tag ab der angekündigten Stunde.',
  'Defaults to the first address of an IPv4 network, fe80::1 for IPv6.':
    'Vorgabe ist die erste Adresse eines IPv4-Netzes, bei IPv6 fe80::1.',
  'Desired number of copies.': 'Gewünschte Anzahl der Kopien.',
  'Email address of another staff member who attests it too.':
    'E-Mail-Adresse eines anderen Mitarbeiters, der es ebenfalls bezeugt.',
  'Empty nodes.': 'Leere Knoten.',
  'Failure domain that no two copies may share.': 'Was zwei Kopien nicht gemeinsam haben dürfen.',
  'Failure domain within the zone.': 'Was in der Zone gemeinsam ausfällt.',
  'Fences even while the node answers: its servers lose their guests.':
    'Riegelt den Knoten auch ab, solange er antwortet: Die Gäste seiner Server enden.',
  ['HTTPS URL on the public Internet of a raw or qcow2 disk with its own boot loader. The disk must not depend on ' +
    'another file.']:
    'Öffentliche HTTPS-Adresse einer Platte im Format raw oder qcow2 mit eigenem Bootloader, die von keiner anderen ' +
    'Datei abhängt.',
  'Hours after which the operation fails; storages that have not left stay.':
    'Stunden, nach denen der Vorgang fehlschlägt. Speicher, die noch nicht umgezogen sind, bleiben.',
  'Hours until the first server leaves; until then its owner sees `maintenance` on it.':
    'Stunden, bis der erste Server umzieht. Bis dahin sieht sein Inhaber die Wartung.',
  'How upstream routers of the zone learn about it. Recorded only; the routers announce the network.':
    'Wie die Router vor der Zone davon erfahren. Nur eine Angabe: Die Router kündigen das Netz selbst an.',
  'Id of the node from now on.': 'Künftig die ID des Knotens.',
  'Limit to set, larger than the present one; the requested one when absent.':
    'Die neue Grenze, größer als die bisherige. Ohne Angabe die gewünschte.',
  'Machines in each zone.': 'Maschinen in jeder Zone.',
  'Maximum number of servers that leave at the same time.': 'Wie viele Server höchstens gleichzeitig umziehen.',
  'Minor version of the Kubernetes that it runs.': 'Nebenversion seines Kubernetes.',
  'Name that servers use; unique, and the id of the template.':
    'Name, den Server nennen; eindeutig, und die ID der Vorlage.',
  'Plan of its machines.': 'Tarif seiner Maschinen.',
  'Pool of nodes with similar processors; plans may require one.':
    'Knoten mit ähnlichen Prozessoren. Tarife können einen Pool verlangen.',
  'Prevents replicated storage from rebuilding meanwhile; refused when there is none.':
    'Hält den replizierten Speicher davon ab, sich inzwischen neu aufzubauen. Ohne solchen Speicher abgelehnt.',
  'Reason shown to the account.': 'Grund, den das Konto sieht.',
  'SHA-256 of the file at source_url, in hex.': 'SHA-256 der Datei, hexadezimal.',
  'Secret in the namespace svccloud-system whose keys username and password are the credentials.':
    'Secret im Namespace svccloud-system, dessen Schlüssel username und password die Zugangsdaten sind.',
  'The network, without host bits.': 'Das Netz, ohne Bits des Hosts.',
  'Time from which it is shown as deprecated.': 'Ab wann sie als veraltet gilt.',
  'Time from which no list contains it.': 'Ab wann sie in keiner Liste steht.',
  'Use of the addresses: single IPv4 addresses, or a /64 each from an IPv6 network.':
    'Wofür die Adressen sind: einzelne IPv4-Adressen, oder je ein /64 aus einem IPv6-Netz.',
  'User who gets the SSH keys of the server.': 'Benutzer, der die SSH-Schlüssel des Servers bekommt.',
  'Virtual cores sold per logical CPU.': 'Virtuelle Kerne, die je logischer CPU verkauft werden.',
  'Whether the Internet does not route the network. Derived from the network by default.':
    'Ob das Netz im Internet nicht geroutet wird. Vorgabe folgt aus dem Netz.',
  'Zone of the region for its machines; exactly one for now.':
    'Zone der Region für seine Maschinen, zurzeit genau eine.',
  'Zones whose nodes must hold it.': 'Zonen, deren Knoten sie haben müssen.',
  'live_then_cold stops and restarts a server that cannot be moved while it runs.':
    'Ob ein Server, der im laufenden Betrieb nicht umziehen kann, dafür angehalten und wieder gestartet wird.',
}
