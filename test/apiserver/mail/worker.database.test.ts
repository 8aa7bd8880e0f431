import { readdir, readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { type ParsedMail, simpleParser } from 'mailparser'
import { SMTPServer } from 'smtp-server'
import { describe, expect, test } from 'vitest'
import { type Message, toMessage } from '../../../apiserver/mail/message.ts'
import { type MailTransport, smtpTransport } from '../../../apiserver/mail/transport.ts'
import { type MailWorkerParts, sendOne } from '../../../apiserver/mail/worker.ts'
import { enqueueMail } from '../../../db/mail/index.ts'
import { mail } from '../../../domain/mail/mails.ts'
import { PLAIN_STYLE } from '../../../domain/mail/write.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'
import { movableClock, openHarness } from '../identity/harness.ts'

const database = useDatabase()
const FROM = 'svccloud <no-reply@cloud.example>'
const link = `https://cloud.example/verify-email#token=${'x'.repeat(90)}`

const workerOf = (transport: MailTransport, clock = movableClock()): MailWorkerParts => ({
  db: database.db,
  clock,
  random: systemRandom,
  log: silentLog,
  transport,
  from: FROM,
  language: 'en',
  style: PLAIN_STYLE,
})
const enqueue = (reason: string) =>
  enqueueMail(database.db, {
    id: newUuid(systemRandom),
    recipient: 'ada@example.com',
    mail: mail('private_cloud_declined', { reason }),
    createdAt: new Date('2026-03-01T12:00:00Z'),
  })

async function withServer(
  receive: (mail: ParsedMail, raw: string) => string | undefined,
  work: (url: string) => Promise<void>,
): Promise<void> {
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    onAuth: (auth, _session, done) => done(null, { user: auth.username ?? '' }),
    onData: (stream, _session, done) => {
      const chunks: Buffer[] = []
      stream.on('data', (chunk: Buffer) => chunks.push(chunk))
      stream.on('end', () => {
        const raw = Buffer.concat(chunks)
        void simpleParser(raw).then((mail) => {
          const refusal = receive(mail, raw.toString())
          done(refusal === undefined ? null : new Error(refusal))
        })
      })
    },
  })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const address = server.server.address()
  if (address === null || typeof address === 'string') throw new Error('no port')
  await work(`smtp://127.0.0.1:${address.port}`).finally(
    () => new Promise<void>((resolve) => server.close(() => resolve())),
  )
}

test('a real SMTP server gets the mail once, with the link whole on its own line', async () => {
  const received: [ParsedMail, string][] = []
  await withServer(
    (...one) => {
      received.push(one)
      return undefined
    },
    async (url) => {
      await enqueue(`Grüße an Zoë\n\n${link}\n`)
      const transport = smtpTransport(url)
      expect(await sendOne(workerOf(transport))).toBe(true)
      expect(await sendOne(workerOf(transport))).toBe(false)
      transport.close()
    },
  )
  const [[arrived, raw] = []] = received
  expect(arrived).toMatchObject({
    subject: 'Your request for private hosts',
    text: expect.stringContaining('Grüße an Zoë'),
  })
  expect(raw?.split('\r\n')).toContain(link)
  expect(raw?.split('\r\n')).toContain('To: ada@example.com')
  expect(received).toHaveLength(1)
})

test('a server that offers no TLS gets no mail, unless that is allowed or it is on this machine', async () => {
  const received: ParsedMail[] = []
  const receive = (mail: ParsedMail) => void received.push(mail)
  await withServer(receive, async (url) => {
    // The kernel takes this address for the machine's own; the mail transport must not.
    const elsewhere = url.replace('127.0.0.1', '0.0.0.0').replace('smtp://', 'smtp://ada:secret@')
    const send = async (transport: MailTransport) => {
      const [from, to] = [FROM, 'ada@example.com']
      const message = { id: newUuid(systemRandom), at: new Date(), from, to, subject: 'Hello', text: 'Hello' }
      await transport.send(message).finally(() => transport.close())
    }
    await expect(send(smtpTransport(elsewhere))).rejects.toMatchObject({ command: 'STARTTLS' })
    expect(received).toEqual([])
    await send(smtpTransport(elsewhere, { allowsPlain: true }))
    await send(smtpTransport(url))
    expect(received).toHaveLength(2)
  })
})

test('a server whose certificate nobody vouches for gets no mail', async () => {
  const server = new SMTPServer({ authOptional: true, onData: (_stream, _session, done) => done() })
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve))
  const { port } = server.server.address() as AddressInfo // it listens on a port
  const transport = smtpTransport(`smtp://0.0.0.0:${port}`)
  const message = { id: 'x', at: new Date(), from: FROM, to: 'ada@example.com', subject: 'Hello', text: 'Hello' }
  await expect(transport.send(message)).rejects.toThrow(/certificate/)
  transport.close()
  await new Promise<void>((resolve) => server.close(() => resolve()))
})

test('a refused mail is tried again later, and two workers never send one mail twice', async () => {
  const clock = movableClock()
  let refusals = 1
  let accepted = 0
  await withServer(
    () => (refusals-- > 0 ? 'mailbox busy' : void (accepted += 1)),
    async (url) => {
      await enqueue('again')
      const worker = workerOf(smtpTransport(url), clock)
      expect(await sendOne(worker)).toBe(true)
      const failed = await database.db
        .selectFrom('email_outbox')
        .select(['attempts', 'last_error', 'sent_at'])
        .where('sent_at', 'is', null)
        .executeTakeFirstOrThrow()
      expect(failed).toMatchObject({ attempts: 1, sent_at: null, last_error: expect.stringContaining('mailbox busy') })
      expect(await sendOne(worker)).toBe(false)
      clock.move(3600)
      expect((await Promise.all([sendOne(worker), sendOne(worker), sendOne(worker)])).filter(Boolean)).toHaveLength(1)
      worker.transport.close()
    },
  )
  expect(accepted).toBe(1)
})

test('without an SMTP server a mail is one readable file that only its owner may open', async () => {
  const harness = await openHarness(database.db)
  await harness.openBrowser().send('POST', '/v1/auth/signup', {
    body: { name: 'File', email: 'file@example.com', password: 'correct zebra lantern 42' },
  })
  await harness.readMails()
  const names = await readdir(harness.mailFolder)
  expect(names.every((name) => name.endsWith('.eml'))).toBe(true)
  const texts = await Promise.all(names.map((name) => readFile(`${harness.mailFolder}/${name}`, 'utf8')))
  const text = texts.find((mail) => mail.includes('To: file@example.com')) ?? ''
  expect(text.split('\r\n').filter((line) => line.startsWith('http'))).toEqual([
    expect.stringMatching(/^http:\/\/127\.0\.0\.1:8080\/verify-email#token=[\w-]{43}$/),
  ])
})

describe('the language of a mail', () => {
  const sendTo = async (recipient: string, language?: 'en' | 'de', of: 'en' | 'de' = 'en') => {
    const sent: Message[] = []
    const transport = { send: async (message: Message) => void sent.push(message), close: () => undefined }
    await enqueueMail(database.db, {
      id: newUuid(systemRandom),
      recipient,
      mail: mail('credit_expires', { credit: 'Start', amount: 123_456, date: '2026-04-01' }),
      language,
      createdAt: new Date('2026-03-01T12:00:00Z'),
    })
    const style = { product: 'Wolke', footers: { de: 'Beispiel GmbH' } }
    while (await sendOne({ ...workerOf(transport), language: of, style }));
    return sent.map(({ subject, text }) => [subject, text])
  }
  const german = [
    [
      'Ihr Guthaben läuft ab',
      expect.stringMatching(/1\.234,56\u00A0€, läuft am 1\. April 2026 ab[^]*-- \nBeispiel GmbH\n$/),
    ],
  ]
  const english = [['Your credit expires', expect.stringContaining('€1,234.56, expires on April 1, 2026')]]

  test('is what the recipient has chosen, whatever the mail was queued with', async () => {
    const harness = await openHarness(database.db)
    const browser = await harness.signUpAndIn('grete@example.com')
    const choose = (preferences: unknown) => browser.send('PUT', '/v1/account/preferences', { body: { preferences } })
    expect(await sendTo('grete@example.com', 'de')).toEqual(german)
    await choose({ locale: 'en' })
    expect(await sendTo('grete@example.com', 'de', 'de')).toEqual(english)
    await choose({ locale: 'de-AT' })
    expect(await sendTo('grete@example.com', 'en')).toEqual(german)
    for (const locale of ['pseudo', 7, null]) {
      await choose({ locale })
      expect(await sendTo('grete@example.com', 'de')).toEqual(german)
    }
  })

  test('is that of the deployment for somebody who has chosen none', async () => {
    expect(await sendTo('nobody@example.com')).toEqual(english)
    expect(await sendTo('nobody@example.com', undefined, 'de')).toEqual(german)
  })

  test('is that of the browser that signs up', async () => {
    const harness = await openHarness(database.db)
    const signUp = (email: string, headers: Record<string, string>) =>
      harness.openBrowser().send('POST', '/v1/auth/signup', {
        body: { name: 'Grete', email, password: 'correct zebra lantern 42' },
        headers,
      })
    await signUp('new@example.com', { 'accept-language': 'de-DE,de;q=0.9,en;q=0.8' })
    await signUp('other@example.com', {})
    const mails = (await Promise.all((await harness.readMails()).map((text) => simpleParser(text)))).map((each) => [
      [each.to ?? []].flat()[0]?.text,
      each.subject,
    ])
    expect(mails).toContainEqual(['new@example.com', 'Bestätigen Sie Ihre E-Mail-Adresse'])
    expect(mails).toContainEqual(['other@example.com', 'Verify your email address'])
    // and of later mails, which no browser causes
    expect(await sendTo('new@example.com')).toEqual(german)
    expect(await sendTo('other@example.com')).toEqual(english)
  })
})

test('what a mail says is removed once it is sent', async () => {
  await enqueue('a secret')
  while (await sendOne(workerOf({ send: async () => undefined, close: () => undefined })));
  const rows = await database.db.selectFrom('email_outbox').select(['body', 'fields']).execute()
  expect(new Set(rows.map(({ body, fields }) => `${body}${fields}`))).toEqual(new Set(['null']))
})

test('a mail of another release, whose name is not known, is sent as it was written', async () => {
  const sent: Message[] = []
  await enqueue('plain')
  await database.db.updateTable('email_outbox').set({ name: 'of_the_future' }).where('sent_at', 'is', null).execute()
  await sendOne({ ...workerOf({ send: async (one) => void sent.push(one), close: () => undefined }), language: 'de' })
  expect(sent.map(({ subject }) => subject)).toEqual(['Your request for private hosts'])
})

test.each([
  ['Müller & Söhne <no-reply@example.com>', 'Müller & Söhne', 'no-reply@example.com'],
  ['"Cloud, Ltd." <no-reply@example.com>', 'Cloud, Ltd.', 'no-reply@example.com'],
  ['Cloud, Ltd. <no-reply@example.com>', 'Cloud, Ltd.', 'no-reply@example.com'],
  ['<b>x</b>" <evil@example.org> <no-reply@example.com>', '<b>x</b>" <evil@example.org>', 'no-reply@example.com'],
  ['no-reply@example.com', '', 'no-reply@example.com'],
])('the sender %j arrives as it is', async (from, name, address) => {
  const subject = 'Größe: ein langer Betreff, der über das Ende eines kodierten Wortes hinausgeht — und weiter'
  const raw = toMessage({ id: 'x', from, to: 'ada@example.com', subject, text: 'x', at: new Date(0) })
  expect(raw.split('\r\n\r\n')[0]).toMatch(/^[\x20-\x7e\r\n]+$/)
  const parsed = await simpleParser(raw)
  expect(parsed.subject).toBe(subject)
  expect(parsed.from?.value).toEqual([{ name, address }])
  expect(parsed.headers.has('bcc')).toBe(false)
})
