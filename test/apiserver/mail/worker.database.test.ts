import { readdir, readFile } from 'node:fs/promises'
import type { AddressInfo } from 'node:net'
import { type ParsedMail, simpleParser } from 'mailparser'
import { SMTPServer } from 'smtp-server'
import { expect, test } from 'vitest'
import { type MailTransport, smtpTransport } from '../../../apiserver/mail/transport.ts'
import { sendOne } from '../../../apiserver/mail/worker.ts'
import { enqueueMail } from '../../../db/mail/index.ts'
import { silentLog } from '../../../kit/sys/log.ts'
import { newUuid, systemRandom } from '../../../kit/sys/random.ts'
import { useDatabase } from '../../database.ts'
import { movableClock, openHarness } from '../identity/harness.ts'

const database = useDatabase()
const FROM = 'svccloud <no-reply@cloud.example>'
const link = `https://cloud.example/verify-email#token=${'x'.repeat(90)}`

const workerOf = (transport: MailTransport, clock = movableClock()) => ({
  db: database.db,
  clock,
  random: systemRandom,
  log: silentLog,
  transport,
  from: FROM,
})
const enqueue = (body: string) =>
  enqueueMail(database.db, {
    id: newUuid(systemRandom),
    recipient: 'ada@example.com',
    subject: 'Hello',
    body,
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
    (mail, raw) => {
      received.push([mail, raw])
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
  const [[mail, raw] = []] = received
  expect(mail).toMatchObject({ subject: 'Hello', text: expect.stringContaining('Grüße an Zoë') })
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
