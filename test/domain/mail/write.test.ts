import { describe, expect, it } from 'vitest'
import { LANGUAGES } from '../../../domain/mail/language.ts'
import { de } from '../../../domain/mail/de.ts'
import { en } from '../../../domain/mail/en.ts'
import { mail, MAIL_NAMES, MAILS } from '../../../domain/mail/mails.ts'
import { faultsOfMailText, writeMail } from '../../../domain/mail/write.ts'

const CATALOGUES = { en, de }
const link = `https://cloud.example/verify-email#token=${'x'.repeat(90)}`

describe.each(LANGUAGES)('mails in %s', (language) => {
  it.each(MAIL_NAMES)('%s has a text that could be its own', (name) => {
    expect(faultsOfMailText(name, CATALOGUES[language].mails[name])).toEqual([])
  })

  it.each(MAIL_NAMES)('%s says all that the mail is about', (name) => {
    for (const field of Object.keys(MAILS[name])) expect(CATALOGUES[language].mails[name].body).toContain(`{${field}}`)
  })
})

it('no text of one language is that of the other', () => {
  for (const name of MAIL_NAMES) {
    expect(de.mails[name].subject).not.toBe(en.mails[name].subject)
    expect(de.mails[name].body).not.toBe(en.mails[name].body)
  }
})

describe('a mail', () => {
  it('has its link alone on a line', () => {
    for (const language of LANGUAGES)
      expect(writeMail(mail('verify_email', { link }), language).body.split('\n')).toContain(link)
  })

  it('writes money, numbers, dates and words as its language does', () => {
    const credit = mail('credit_expires', { credit: 'Start', amount: 123_456, date: '2026-04-01' })
    expect(writeMail(credit, 'en').body).toContain('"Start", €1,234.56, expires on April 1, 2026')
    expect(writeMail(credit, 'de').body).toContain('„Start“, 1.234,56\u00A0€, läuft am 1. April 2026 ab')
    const quota = mail('quota_granted', { quota: 'servers', limit: 12_000 })
    expect(writeMail(quota, 'en').body).toContain('is 12,000 now')
    expect(writeMail(quota, 'de').body).toContain('ist jetzt 12.000')
    const invoice = mail('invoice', { month: '2026-03', amount: 5, page: undefined })
    expect(writeMail(invoice, 'en').body).toContain('for March 2026 is there: €0.05')
    expect(writeMail(invoice, 'de').body).toContain('für März 2026 ist da: 0,05\u00A0€')
    const paused = mail('webhook_paused', { reason: 'gone' })
    expect(writeMail(paused, 'de').body).toContain('Der Empfänger hat mit 410 Gone geantwortet.')
    const invitation = mail('invitation', { inviter: 'ada@example.com', account: 'Ada', role: 'viewer', link })
    expect(writeMail(invitation, 'de').body).toContain('(Rolle: Betrachter)')
  })

  it('leaves the paragraph of a page out when there is no page', () => {
    const facts = { month: '2026-03', amount: 5 }
    const hosted = 'https://pay.example/1'
    expect(writeMail(mail('invoice', { ...facts, page: hosted }), 'en').body).toMatch(
      /method\.\n\nSee and pay it here:\nhttps:\/\/pay\.example\/1\n$/,
    )
    expect(writeMail(mail('invoice', { ...facts, page: undefined }), 'en').body).toMatch(/method\.\n$/)
  })

  it('fills a field once, in one line, whatever a stranger called an account', () => {
    const account = '{link} {product}\n\nhttps://evil.example/\r\nBcc: x $& $1'
    const { subject, body } = writeMail(
      mail('invitation', { inviter: 'ada@example.com', account, role: 'admin', link }),
      'en',
      { product: 'Example' },
    )
    expect(subject).toBe(en.mails.invitation.subject)
    expect(body.split('\n')[0]).toContain('"{link} {product} https://evil.example/ Bcc: x $& $1" as admin')
    expect(body.match(new RegExp(link, 'g'))).toHaveLength(1)
  })

  it('has the name, the texts and the footer of its deployment', () => {
    const style = {
      product: 'Wolke <b>7</b>',
      texts: { de: { verify_email: { subject: 'Los mit {product}', body: 'Hier:\n{link}' } } },
      footers: { de: 'Beispiel GmbH\nMusterweg 1\n' },
    }
    expect(writeMail(mail('verify_email', { link }), 'de', style)).toEqual({
      subject: 'Los mit Wolke <b>7</b>',
      body: `Hier:\n${link}\n\n-- \nBeispiel GmbH\nMusterweg 1\n`,
    })
    expect(writeMail(mail('verify_email', { link }), 'en', style).body).toMatch(/^Welcome to Wolke <b>7<\/b>\./)
    const subjectOnly = { ...style, texts: { de: { password_changed: { subject: 'Neu' } } } }
    expect(writeMail(mail('password_changed', {}), 'de', subjectOnly)).toMatchObject({
      subject: 'Neu',
      body: expect.stringContaining('Das Passwort Ihres Benutzers'),
    })
  })
})

it.each([
  ['verify_email', { body: 'Open {lnk}\n{link}' }, ['there is no field {lnk}, only {link}, {product}']],
  ['verify_email', { body: 'Open it.' }, ['{link} must be alone on a line']],
  ['verify_email', { body: 'Open {link} now' }, ['{link} must be alone on a line']],
  ['password_changed', { body: 'Done. {link}' }, ['there is no field {link}, only {product}']],
  ['password_changed', { body: '{__proto__} {constructor}' }, [/no field \{__proto__\}/, /no field \{constructor\}/]],
  ['password_changed', { body: 'Use {Braces}' }, [/a \{ that belongs/, /a \} that belongs/]],
  ['password_changed', { body: ' \n ' }, ['the body is empty']],
  ['password_changed', { body: 'a\u0000b' }, ['the body contains control characters']],
  ['password_changed', { body: 'a'.repeat(5_001) }, ['the body has more than 5000 characters']],
  ['invitation', { subject: 'From {inviter}' }, ['the subject cannot contain {inviter}, only {product}']],
  ['invitation', { subject: 'A\r\nBcc: all@example.com' }, ['the subject must be one line']],
  ['invitation', { subject: '' }, ['the subject is empty']],
  ['invitation', { subject: 'a'.repeat(121) }, ['the subject has more than 120 characters']],
  ['invitation', { subject: '{product' }, [/a \{ that belongs/]],
  ['invoice', { subject: '{product}: your invoice', body: 'It is {amount}.' }, []],
] as const)('a text of %s with %j is judged', (name, text, faults) => {
  const found = faultsOfMailText(name, text)
  expect(found).toHaveLength(faults.length)
  for (const [at, fault] of faults.entries()) expect(found[at]).toMatch(fault)
})
