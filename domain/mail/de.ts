/** Mails in German. */
import type { MailTexts } from './mails.ts'

export const de: MailTexts = {
  mails: {
    verify_email: {
      subject: 'Bestätigen Sie Ihre E-Mail-Adresse',
      body: `\
Willkommen bei {product}. Öffnen Sie diesen Link, um Ihre E-Mail-Adresse zu bestätigen. Er gilt zwei Tage.

{link}

Wenn Sie bereits angemeldet sind, öffnen Sie ihn in diesem Browser. Anderswo geöffnet, beendet er Ihre Sitzungen und \
entfernt Tokens, einen zweiten Faktor und Mitglieder, die vorher hinzugefügt wurden.

Wenn Sie sich nicht registriert haben, öffnen Sie ihn nicht: Jemand anderes hat das Passwort gewählt.`,
    },
    sign_up_attempt: {
      subject: 'Registrierung mit Ihrer E-Mail-Adresse',
      body: `\
Jemand wollte sich mit dieser Adresse registrieren. Zu ihr gibt es bereits einen Benutzer. Melden Sie sich hier an, \
oder setzen Sie dort das Passwort zurück, wenn Sie es vergessen haben.

{link}

Wenn Sie das nicht waren, ist nichts zu tun: Es wurde kein Konto angelegt und nichts geändert.`,
    },
    reset_password: {
      subject: 'Setzen Sie Ihr Passwort zurück',
      body: `\
Öffnen Sie diesen Link, um ein neues Passwort zu wählen. Er gilt 30 Minuten und nur einmal.

{link}

Wenn Sie das nicht waren, ignorieren Sie diese E-Mail: Ohne den Link geschieht nichts.`,
    },
    password_changed: {
      subject: 'Ihr Passwort wurde geändert',
      body:
        'Das Passwort Ihres Benutzers wurde geändert, und die anderswo offenen Sitzungen wurden beendet. Wenn Sie ' +
        'das nicht waren, setzen Sie das Passwort jetzt zurück und wenden Sie sich an den Support.',
    },
    invitation: {
      subject: 'Sie sind zu einem Konto eingeladen',
      body: `\
{inviter} lädt Sie in das Konto „{account}“ ein (Rolle: {role}). Öffnen Sie diesen Link, um anzunehmen. Er gilt sieben \
Tage.

{link}

Wenn Sie das nicht erwarten, ignorieren Sie diese E-Mail.`,
    },
    second_factor_locked: {
      subject: 'Ihr zweiter Faktor ist vorübergehend gesperrt',
      body:
        'Nach Ihrem richtigen Passwort wurden mehrmals nacheinander falsche Codes des zweiten Faktors eingegeben. ' +
        'Der zweite Faktor ist vorübergehend gesperrt. Wenn Sie das nicht waren, kennt jemand Ihr Passwort: Ändern ' +
        'Sie es.',
    },
    private_cloud_request: {
      subject: 'Eine Anfrage nach eigenen Hosts',
      body: 'Ein Konto fragt nach eigenen Hosts. Die Anfrage ist {request}.',
    },
    private_cloud_fulfilled: {
      subject: 'Ihre eigenen Hosts sind bereit',
      body: 'Die angefragten Hosts gehören jetzt Ihnen. Neue Server in deren Zonen werden zuerst auf ihnen platziert.',
    },
    private_cloud_declined: {
      subject: 'Ihre Anfrage nach eigenen Hosts',
      body: 'Wir können Ihnen die angefragten Hosts nicht geben: {reason}',
    },
    quota_request: {
      subject: 'Eine Anfrage nach einem größeren Kontingent',
      body: 'Ein Konto fragt nach einem größeren Kontingent. Die Anfrage ist {request}.',
    },
    quota_granted: {
      subject: 'Ihr Kontingent ist größer',
      body: 'Das Kontingent „{quota}“ Ihres Kontos ist jetzt {limit}.',
    },
    quota_declined: {
      subject: 'Ihre Anfrage nach einem größeren Kontingent',
      body: 'Wir können Ihnen kein größeres Kontingent „{quota}“ geben: {reason}',
    },
    invoice: {
      subject: 'Ihre Rechnung',
      body: `\
Ihre Rechnung für {month} ist da: {amount}. Sie wird über Ihre Standard-Zahlungsmethode eingezogen.

Hier können Sie sie ansehen und bezahlen:
{page}`,
    },
    charge_failed: {
      subject: 'Eine Zahlung ist fehlgeschlagen',
      body: `\
Die Rechnung für {month} ({amount}) konnte nicht eingezogen werden. Bezahlen Sie sie innerhalb von {days} Tagen: \
Danach können Sie nichts Neues anlegen, das kostet. Was läuft, läuft weiter.

Hier können Sie sie ansehen und bezahlen:
{page}`,
    },
    account_suspended: {
      subject: 'Ihr Konto ist gesperrt',
      body:
        'Eine Rechnung ist überfällig. Bis sie bezahlt ist, können Sie nichts Neues anlegen, das kostet. Was läuft, ' +
        'läuft weiter. Die Zahlung hebt die Sperre innerhalb von Minuten auf.',
    },
    suspension_lifted: {
      subject: 'Ihr Konto ist nicht mehr gesperrt',
      body: 'Ihre überfällige Rechnung ist bezahlt. Vielen Dank.',
    },
    payment_method_expires: {
      subject: 'Ihre Zahlungsmethode läuft ab',
      body:
        'Die Zahlungsmethode, über die Ihre Rechnungen eingezogen werden, läuft Ende {month} ab. Fügen Sie ' +
        'rechtzeitig eine andere hinzu.',
    },
    credit_expires: {
      subject: 'Ihr Guthaben läuft ab',
      body:
        'Der Rest Ihres Guthabens „{credit}“, {amount}, läuft am {date} ab. Ohne Zahlungsmethode können Sie danach ' +
        'nichts Neues anlegen, das kostet.',
    },
    webhook_paused: {
      subject: 'Ein Webhook Ihres Kontos wurde angehalten',
      body: `\
Ereignisse Ihres Kontos werden an einen seiner Webhooks nicht mehr gesendet. {reason}

Die Liste der Webhooks zeigt, welcher es ist, und seine Zustellungen zeigen, was geantwortet wurde. Eine Änderung des \
Webhooks setzt ihn fort, ebenso ein Testereignis, das zugestellt wird. Ereignisse aus der Zwischenzeit werden nicht \
gesendet.`,
    },
    audit_sink_fails: {
      subject: 'Ihr Audit-Log kann nicht gesendet werden',
      body: `\
Seit einer Stunde kommt vom Audit-Log Ihres Kontos nichts dort an, wohin eines seiner Audit-Ziele es sendet.

Die Liste der Audit-Ziele zeigt, welches es ist, und warum. Nichts geht verloren: Es wird dort fortgesetzt, wo es \
aufgehört hat.`,
    },
    addresses_change: {
      subject: 'IPv6-Adressen Ihrer Server ändern sich',
      body: `\
Einige Ihrer Server haben ein IPv6-Präfix aus einem Netz, das abgelöst wird. Jeder von ihnen kann jetzt im Betrieb ein \
anderes Präfix erhalten: auf der Seite des Servers, oder mit dieser Anfrage und seiner ID.

POST /v1/servers/ID/renumber-ipv6

Die betroffenen Server zeigen ipv6_renumber_available. Ihr bisheriges Präfix funktioniert neben dem neuen weiter, bis \
das Netz abgelöst ist.`,
    },
    backup_damaged: {
      subject: 'Eine Sicherung kann nicht vollständig wiederhergestellt werden',
      body: `\
Sicherung {backup} des Speichers {storage} wurde zurückgelesen. Ein Teil davon fehlt oder ist falsch:

{damage}

Erstellen Sie eine neue Sicherung des Speichers.`,
    },
  },
  roles: { owner: 'Owner', admin: 'Admin', member: 'Mitglied', viewer: 'Betrachter' },
  pauses: {
    gone: 'Der Empfänger hat mit 410 Gone geantwortet.',
    failing: 'Seit drei Tagen ist jede Zustellung fehlgeschlagen.',
  },
}
