/** Writes mails in a language, and judges texts that a deployment has instead of ours. */
import type { Language } from './language.ts'
import type { Role } from '../permissions.ts'
import { de } from './de.ts'
import { en } from './en.ts'
import {
  kindOfField,
  type Mail,
  MAILS,
  type MailName,
  type MailText,
  type MailTexts,
  type OwnMailText,
  type OwnMailTexts,
  type Pause,
} from './mails.ts'

const TEXTS: Readonly<Record<Language, MailTexts>> = { en, de }

/** What a deployment decides of its mails. */
export interface MailStyle {
  /** Name of the deployment. */
  readonly product: string
  readonly texts?: OwnMailTexts | undefined
  /** Below each mail, such as who sends it. */
  readonly footers?: Readonly<Partial<Record<Language, string | undefined>>> | undefined
}

export const PLAIN_STYLE: MailStyle = { product: 'svccloud' }

const FIELD = /\{([a-z_]+)\}/g
/** Below this line, programs that show mails fold the rest. */
const FOOTER_MARK = '-- '

/** The mail as plain text. */
export function writeMail(
  { name, fields }: Mail,
  language: Language,
  { product, texts, footers }: MailStyle = PLAIN_STYLE,
): MailText {
  const [plain, own] = [TEXTS[language].mails[name], texts?.[language]?.[name]]
  const { subject = plain.subject, body = plain.body } = own ?? plain
  const valueOf = (field: string): string | undefined => {
    if (field === 'product') return product
    const [kind, value] = [kindOfField(name, field), fields[field]]
    return kind === undefined || value === undefined ? undefined : written(kind, value, language)
  }
  const paragraphs = body.trim().split(/\n{2,}/)
  const whole = paragraphs.filter((text) => fieldsIn(text).every((field) => valueOf(field) !== undefined))
  const filled = whole.map((text) => text.replaceAll(FIELD, (_, field: string) => valueOf(field) ?? ''))
  const footer = footers?.[language]
  const end = footer === undefined ? [] : [`${FOOTER_MARK}\n${footer.trim()}`]
  return {
    subject: subject.replaceAll(FIELD, (_, field: string) => (field === 'product' ? product : '')),
    body: `${[...filled, ...end].join('\n\n')}\n`,
  }
}

const fieldsIn = (text: string): readonly string[] => [...text.matchAll(FIELD)].map(([, field = '']) => field)

const CENTS = 100

function written(
  kind: NonNullable<ReturnType<typeof kindOfField>>,
  value: string | number,
  language: Language,
): string {
  const { roles, pauses } = TEXTS[language]
  switch (kind) {
    case 'number':
      return new Intl.NumberFormat(language).format(Number(value))
    case 'cents':
      return new Intl.NumberFormat(language, { style: 'currency', currency: 'EUR' }).format(Number(value) / CENTS)
    case 'date':
      return new Intl.DateTimeFormat(language, { dateStyle: 'long', timeZone: 'UTC' }).format(new Date(value))
    case 'month':
      return new Intl.DateTimeFormat(language, { year: 'numeric', month: 'long', timeZone: 'UTC' }).format(
        new Date(`${value}-01`),
      )
    case 'role':
      return roles[value as Role] // of the kind
    case 'pause':
      return pauses[value as Pause] // of the kind
    case 'paragraphs':
      return String(value).trim()
    case 'text':
    case 'link':
    case 'page':
      return String(value).replaceAll(/\s+/g, ' ')
  }
}

const SUBJECT_CHARACTERS_MAXIMUM = 120
const BODY_CHARACTERS_MAXIMUM = 5_000

/** Why a text cannot be that of the mail, as sentences without their end; empty when it can. */
export function faultsOfMailText(name: MailName, { subject, body }: OwnMailText): readonly string[] {
  return [
    ...(subject === undefined ? [] : faultsOfSubject(subject)),
    ...(body === undefined ? [] : faultsOfBody(name, body)),
  ]
}

function faultsOfSubject(subject: string): readonly string[] {
  const strange = fieldsIn(subject).filter((field) => field !== 'product')
  return [
    ...(subject.trim() === '' ? ['the subject is empty'] : []),
    ...(/\p{Cc}/u.test(subject) ? ['the subject must be one line'] : []),
    ...(subject.length > SUBJECT_CHARACTERS_MAXIMUM
      ? [`the subject has more than ${SUBJECT_CHARACTERS_MAXIMUM} characters`]
      : []),
    ...strange.map((field) => `the subject cannot contain {${field}}, only {product}`),
    ...strayBraces(subject).map((brace) => `the subject has a ${brace} that belongs to no field`),
  ]
}

function faultsOfBody(name: MailName, body: string): readonly string[] {
  const known = [...Object.keys(MAILS[name]), 'product']
  const strange = [...new Set(fieldsIn(body))].filter((field) => !known.includes(field))
  const links = known.filter((field) => kindOfField(name, field) === 'link')
  const lines = body.split('\n').map((line) => line.trim())
  return [
    ...(body.trim() === '' ? ['the body is empty'] : []),
    ...(/[^\P{Cc}\n\t]/u.test(body) ? ['the body contains control characters'] : []),
    ...(body.length > BODY_CHARACTERS_MAXIMUM ? [`the body has more than ${BODY_CHARACTERS_MAXIMUM} characters`] : []),
    ...strange.map((field) => `there is no field {${field}}, only ${known.map((each) => `{${each}}`).join(', ')}`),
    ...links.filter((field) => !lines.includes(`{${field}}`)).map((field) => `{${field}} must be alone on a line`),
    ...strayBraces(body).map((brace) => `the body has a ${brace} that belongs to no field`),
  ]
}

const strayBraces = (text: string): readonly string[] => [...new Set(text.replaceAll(FIELD, '').match(/[{}]/g) ?? [])]
