/** Every mail that people get: its name, and the fields that its text may use. The texts are in one file for each
 *  language. */
import type { Language } from './language.ts'
import type { Role } from '../permissions.ts'

/** Kinds of fields. A field of `text` is one line; `paragraphs` may have more. Cents are of a euro. A `month` is
 *  YYYY-MM, a `date` YYYY-MM-DD. A `link` must be in the text, alone on its line, so that it can be copied. The
 *  paragraph with a `page` is left out when there is no page. */
interface Values {
  text: string
  paragraphs: string
  link: string
  page: string | undefined
  number: number
  cents: number
  date: string
  month: string
  role: Role
  pause: Pause
}
type Kind = keyof Values

/** Why a webhook is paused. */
export type Pause = 'gone' | 'failing'

export const MAILS = {
  verify_email: { link: 'link' },
  sign_up_attempt: { link: 'link' },
  reset_password: { link: 'link' },
  password_changed: {},
  invitation: { inviter: 'text', account: 'text', role: 'role', link: 'link' },
  second_factor_locked: {},
  /** To the staff; the request itself is behind their sign-in. */
  private_cloud_request: { request: 'text' },
  private_cloud_fulfilled: {},
  private_cloud_declined: { reason: 'paragraphs' },
  /** To the staff; the request itself is behind their sign-in. */
  quota_request: { request: 'text' },
  quota_granted: { quota: 'text', limit: 'number' },
  quota_declined: { quota: 'text', reason: 'paragraphs' },
  invoice: { month: 'month', amount: 'cents', page: 'page' },
  charge_failed: { month: 'month', amount: 'cents', days: 'number', page: 'page' },
  account_suspended: {},
  suspension_lifted: {},
  payment_method_expires: { month: 'month' },
  credit_expires: { credit: 'text', amount: 'cents', date: 'date' },
  webhook_paused: { reason: 'pause' },
  audit_sink_fails: {},
  addresses_change: {},
  backup_damaged: { backup: 'text', storage: 'text', damage: 'paragraphs' },
} as const satisfies Readonly<Record<string, Readonly<Record<string, Kind>>>>

export type MailName = keyof typeof MAILS
export const MAIL_NAMES = Object.keys(MAILS) as readonly MailName[] // the keys of the table

export type FieldsOf<Name extends MailName> = {
  readonly [Field in keyof (typeof MAILS)[Name]]: Values[(typeof MAILS)[Name][Field] & Kind]
}

/** A mail before it is written in a language. */
export interface Mail {
  readonly name: MailName
  readonly fields: Readonly<Record<string, string | number | undefined>>
}

export const mail = <Name extends MailName>(name: Name, fields: FieldsOf<Name>): Mail => ({ name, fields })

/** Plain text with fields such as `{link}`. `{product}` is the name of the deployment. */
export interface MailText {
  /** One line, without other fields: it contains nothing that a stranger chose. */
  readonly subject: string
  /** Paragraphs, with an empty line between them. */
  readonly body: string
}

/** The texts of one language. */
export interface MailTexts {
  readonly mails: Readonly<Record<MailName, MailText>>
  readonly roles: Readonly<Record<Role, string>>
  readonly pauses: Readonly<Record<Pause, string>>
}

/** A text that a deployment has instead of ours, or a part of it. */
export interface OwnMailText {
  readonly subject?: string | undefined
  readonly body?: string | undefined
}
export type OwnMailTexts = Readonly<
  Partial<Record<Language, { readonly [Name in MailName]?: OwnMailText | undefined } | undefined>>
>

export const kindOfField = (name: MailName, field: string): Kind | undefined => {
  const fields: Readonly<Record<string, Kind>> = MAILS[name]
  return Object.hasOwn(fields, field) ? fields[field] : undefined
}
