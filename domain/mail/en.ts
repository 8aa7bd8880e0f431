/** Mails in English. */
import type { MailTexts } from './mails.ts'

export const en: MailTexts = {
  mails: {
    verify_email: {
      subject: 'Verify your email address',
      body: `\
Welcome to {product}. Open this link to verify your email address; it works for two days.

{link}

If you have signed in already, open it in that browser. Opened elsewhere, it ends your sessions and removes tokens, a \
second factor and members that were added before.

If you did not sign up, do not open it: somebody else chose the password.`,
    },
    sign_up_attempt: {
      subject: 'Sign-up with your email address',
      body: `\
Somebody tried to sign up with this address, which has a user already. Sign in here, or reset the password there if \
you forgot it.

{link}

If this was not you, there is nothing to do: no account was made and nothing was changed.`,
    },
    reset_password: {
      subject: 'Reset your password',
      body: `\
Open this link to choose a new password; it works for 30 minutes and once.

{link}

If this was not you, ignore this mail: nothing happens without the link.`,
    },
    password_changed: {
      subject: 'Your password was changed',
      body:
        'The password of your user was changed, and the sessions that were open elsewhere were ended. If this was ' +
        'not you, reset the password now and contact support.',
    },
    invitation: {
      subject: 'You are invited to an account',
      body: `\
{inviter} invites you to join the account "{account}" as {role}. Open this link to accept; it works for seven days.

{link}

If you do not expect this, ignore this mail.`,
    },
    second_factor_locked: {
      subject: 'Your second factor is locked for a while',
      body:
        'Wrong second-factor codes were entered several times in a row after your right password. The second factor ' +
        'is locked for a while. If this was not you, somebody knows your password: change it.',
    },
    private_cloud_request: {
      subject: 'A request for private hosts',
      body: 'An account requests private hosts. The request is {request}.',
    },
    private_cloud_fulfilled: {
      subject: 'Your private hosts are ready',
      body:
        'The hosts that you asked for are yours now. New servers in their zones are placed on them before any ' +
        'others.',
    },
    private_cloud_declined: {
      subject: 'Your request for private hosts',
      body: 'We cannot give you the hosts that you asked for: {reason}',
    },
    quota_request: {
      subject: 'A request for a larger quota',
      body: 'An account requests a larger quota. The request is {request}.',
    },
    quota_granted: {
      subject: 'Your quota is larger',
      body: 'The quota "{quota}" of your account is {limit} now.',
    },
    quota_declined: {
      subject: 'Your request for a larger quota',
      body: 'We cannot give you a larger quota "{quota}": {reason}',
    },
    invoice: {
      subject: 'Your invoice',
      body: `\
Your invoice for {month} is there: {amount}. It is charged to your default payment method.

See and pay it here:
{page}`,
    },
    charge_failed: {
      subject: 'A payment failed',
      body: `\
The invoice for {month} ({amount}) could not be charged. Pay it within {days} days: after that you can make nothing \
new that costs. What runs goes on.

See and pay it here:
{page}`,
    },
    account_suspended: {
      subject: 'Your account is suspended',
      body:
        'An invoice is overdue. Until it is paid you can make nothing new that costs; what runs goes on. Paying ' +
        'lifts the suspension within minutes.',
    },
    suspension_lifted: {
      subject: 'Your account is no longer suspended',
      body: 'Your overdue invoice is paid. Thank you.',
    },
    payment_method_expires: {
      subject: 'Your payment method expires',
      body:
        'The payment method that your invoices are charged to expires at the end of {month}. Add another one in ' +
        'time.',
    },
    credit_expires: {
      subject: 'Your credit expires',
      body:
        'What is left of your credit "{credit}", {amount}, expires on {date}. Without a payment method you can make ' +
        'nothing new that costs from then on.',
    },
    webhook_paused: {
      subject: 'A webhook of your account was paused',
      body: `\
Events of your account are no longer sent to one of its webhooks. {reason}

The list of webhooks shows which one it is, and its deliveries show what was answered. A change of the webhook resumes \
it, and so does a test event that is delivered. Events of the meantime are not sent.`,
    },
    audit_sink_fails: {
      subject: 'Your audit log cannot be sent',
      body: `\
For an hour, nothing of the audit log of your account has arrived where one of its audit sinks sends it.

The list of audit sinks shows which one it is, and why. Nothing is lost: it continues where it was.`,
    },
    addresses_change: {
      subject: 'IPv6 addresses of your servers will change',
      body: `\
Some of your servers have an IPv6 prefix of a network that is going to be retired. Each of them can be given another \
prefix now, while it runs: by "Renumber IPv6" on the page of the server, or by this request with its id.

POST /v1/servers/ID/renumber-ipv6

The servers concerned show ipv6_renumber_available. The prefix that they have works on beside the new one until the \
network is retired.`,
    },
    backup_damaged: {
      subject: 'A backup cannot be restored completely',
      body: `\
Backup {backup} of storage {storage} was read back, and a part of it is missing or wrong:

{damage}

Make another backup of the storage.`,
    },
  },
  roles: { owner: 'owner', admin: 'admin', member: 'member', viewer: 'viewer' },
  pauses: {
    gone: 'The receiver answered 410 Gone.',
    failing: 'Every delivery has failed for three days.',
  },
}
