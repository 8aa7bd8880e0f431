/** Every mail that people get, as subject and plain text. Links stand alone on a line and carry the secret in the
 *  fragment, so that it reaches no server's log. Subjects are ASCII and constant: nothing that a stranger chose is in
 *  them. */

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
    IGNORE,
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
