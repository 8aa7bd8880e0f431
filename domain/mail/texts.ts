/** Every mail that people get, as subject and plain text. A link is alone on its line and carries the secret in the
 *  fragment, so that it reaches no server's log. Subjects are ASCII and constant: they contain nothing that a stranger
 *  chose. */

export interface MailText {
  readonly subject: string
  readonly body: string
}

const letter = (subject: string, ...paragraphs: readonly string[]): MailText => ({
  subject,
  body: `${paragraphs.join('\n\n')}\n`,
})
const IGNORE = 'If this was not you, ignore this mail: nothing happens without the link.'

export const verifyEmailMail = (origin: string, token: string): MailText =>
  letter(
    'Verify your email address',
    'Welcome. Open this link to verify your email address; it works for two days.',
    `${origin}/verify-email#token=${token}`,
    'If you have signed in already, open it in that browser. Opened elsewhere, it ends your sessions and removes ' +
      'tokens, a second factor and members that were added before.',
    'If you did not sign up, do not open it: somebody else chose the password.',
  )

export const signUpAttemptMail = (origin: string): MailText =>
  letter(
    'Sign-up with your email address',
    'Somebody tried to sign up with this address, which has a user already. Sign in here, or reset the password ' +
      'there if you forgot it.',
    `${origin}/login`,
    'If this was not you, there is nothing to do: no account was made and nothing was changed.',
  )

export const resetPasswordMail = (origin: string, token: string): MailText =>
  letter(
    'Reset your password',
    'Open this link to choose a new password; it works for 30 minutes and once.',
    `${origin}/reset-password#token=${token}`,
    IGNORE,
  )

export const passwordChangedMail = (): MailText =>
  letter(
    'Your password was changed',
    'The password of your user was changed, and the sessions that were open elsewhere were ended. If this was ' +
      'not you, reset the password now and contact support.',
  )

export const invitationMail = (
  origin: string,
  token: string,
  account: { readonly name: string; readonly role: string; readonly invitedBy: string },
): MailText =>
  letter(
    'You are invited to an account',
    `${account.invitedBy} invites you to join the account "${account.name}" as ${account.role}. Open this link ` +
      'to accept; it works for seven days.',
    `${origin}/accept-invitation#invitation=${token}`,
    'If you do not expect this, ignore this mail.',
  )

export const secondFactorLockedMail = (): MailText =>
  letter(
    'Your second factor is locked for a while',
    'Wrong second-factor codes were entered several times in a row after your right password. The second factor ' +
      'is locked for a while. If this was not you, somebody knows your password: change it.',
  )

/** To the staff; the request itself is behind their sign-in. */
export const privateCloudRequestMail = (id: string): MailText =>
  letter('A request for private hosts', `An account requests private hosts. The request is ${id}.`)

export const privateCloudFulfilledMail = (): MailText =>
  letter(
    'Your private hosts are ready',
    'The hosts that you asked for are yours now. New servers in their zones are placed on them before any others.',
  )

export const privateCloudDeclinedMail = (reason: string): MailText =>
  letter('Your request for private hosts', `We cannot give you the hosts that you asked for: ${reason}`)

/** To the staff; the request itself is behind their sign-in. */
export const quotaRequestMail = (id: string): MailText =>
  letter('A request for a larger quota', `An account requests a larger quota. The request is ${id}.`)

export const quotaGrantedMail = (name: string, limit: number): MailText =>
  letter('Your quota is larger', `The quota "${name}" of your account is ${limit} now.`)

export const quotaDeclinedMail = (name: string, reason: string): MailText =>
  letter('Your request for a larger quota', `We cannot give you a larger quota "${name}": ${reason}`)

const CENTS = 100
/** In the form that people write, in euro. */
const money = (cents: number): string => `EUR ${Math.floor(cents / CENTS)}.${String(cents % CENTS).padStart(2, '0')}`

interface InvoiceMail {
  /** The month as YYYY-MM. */
  readonly period: string
  readonly dueCents: number
  /** Where it can be seen and paid. */
  readonly hostedUrl: string | undefined
}

const page = (hostedUrl: string | undefined): readonly string[] =>
  hostedUrl === undefined ? [] : ['See and pay it here:', hostedUrl]

export const invoiceMail = ({ period, dueCents, hostedUrl }: InvoiceMail): MailText =>
  letter(
    'Your invoice',
    `Your invoice of ${period} is there: ${money(dueCents)}. It is charged to your default payment method.`,
    ...page(hostedUrl),
  )

export const chargeFailedMail = ({ period, dueCents, hostedUrl }: InvoiceMail, graceDays: number): MailText =>
  letter(
    'A payment failed',
    `The invoice of ${period} (${money(dueCents)}) could not be charged. Pay it within ${graceDays} days: after ` +
      'that you can make nothing new that costs. What runs goes on.',
    ...page(hostedUrl),
  )

export const suspendedMail = (): MailText =>
  letter(
    'Your account is suspended',
    'An invoice is overdue. Until it is paid you can make nothing new that costs; what runs goes on. Paying lifts ' +
      'the suspension within minutes.',
  )

export const suspensionLiftedMail = (): MailText =>
  letter('Your account is no longer suspended', 'Your overdue invoice is paid. Thank you.')

export const methodExpiresMail = (month: string): MailText =>
  letter(
    'Your payment method expires',
    `The payment method that your invoices are charged to expires at the end of ${month}. Add another one in time.`,
  )

export const creditExpiresMail = (label: string, leftCents: number, date: string): MailText =>
  letter(
    'Your credit expires',
    `What is left of your credit "${label}", ${money(leftCents)}, expires on ${date}. Without a payment method ` +
      'you can make nothing new that costs from then on.',
  )

export const webhookPausedMail = (reason: string): MailText =>
  letter(
    'A webhook of your account was paused',
    `Events of your account are no longer sent to one of its webhooks. ${reason}`,
    'The list of webhooks shows which one it is, and its deliveries show what was answered. A change of the ' +
      'webhook resumes it, and so does a test event that is delivered. Events of the meantime are not sent.',
  )

export const auditSinkFailsMail = (): MailText =>
  letter(
    'Your audit log cannot be sent',
    'For an hour, nothing of the audit log of your account has arrived where one of its audit sinks sends it.',
    'The list of audit sinks shows which one it is, and why. Nothing is lost: it continues where it was.',
  )
