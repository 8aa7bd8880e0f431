/** Where mails go: an SMTP server, or one RFC 5322 file per mail in a folder. */
import { mkdir, rename, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createTransport } from 'nodemailer'
import { LOOPBACK_HOSTS } from '../../kit/http/loopback.ts'
import { type Message, toMessage } from './message.ts'

export interface MailTransport {
  /** Resolves when the mail is handed over; throws when it must be retried. The same mail may be sent twice. */
  send(message: Message): Promise<void>
  close(): void
}

const SMTP_TIMEOUT_MILLISECONDS = 20_000
const SMTP_CONNECTIONS_MAXIMUM = 2

/** `url`: smtp://user:password@host:port or smtps://… A mail and the password are sent in clear text to this machine
 *  only: a server elsewhere that offers no TLS gets neither, unless `allowsPlain`. */
export function smtpTransport(url: string, { allowsPlain = false } = {}): MailTransport {
  const address = new URL(url)
  const transporter = createTransport({
    host: address.hostname.replace(/^\[|\]$/g, ''),
    port: Number(address.port || (address.protocol === 'smtps:' ? 465 : 587)),
    secure: address.protocol === 'smtps:',
    requireTLS: !allowsPlain && !LOOPBACK_HOSTS.includes(address.hostname),
    ...(address.username === ''
      ? {}
      : { auth: { user: decodeURIComponent(address.username), pass: decodeURIComponent(address.password) } }),
    pool: true,
    maxConnections: SMTP_CONNECTIONS_MAXIMUM,
    connectionTimeout: SMTP_TIMEOUT_MILLISECONDS,
    greetingTimeout: SMTP_TIMEOUT_MILLISECONDS,
    socketTimeout: SMTP_TIMEOUT_MILLISECONDS,
    disableFileAccess: true,
    disableUrlAccess: true,
  })
  return {
    async send(message) {
      const from = /<([^>]+)>\s*$/.exec(message.from)?.[1] ?? message.from
      await transporter.sendMail({ envelope: { from, to: [message.to] }, raw: toMessage(message) })
    },
    close: () => transporter.close(),
  }
}

/** Files `<time>-<id>.eml`, complete as soon as they have that name. They contain secrets: only the owner may read
 *  them. */
export function folderTransport(folder: string): MailTransport {
  return {
    async send(message) {
      await mkdir(folder, { recursive: true, mode: 0o700 })
      const name = `${message.at.toISOString().replace(/[:.]/g, '-')}-${message.id}.eml`
      const unfinished = join(folder, `.${name}.part`)
      await writeFile(unfinished, toMessage(message), { mode: 0o600 })
      await rename(unfinished, join(folder, name))
    },
    close: () => undefined,
  }
}

/** The configured transport; undefined when the deployment sends no mail. */
export function openMailTransport(options: {
  readonly smtpUrl?: string | undefined
  readonly allowsPlain?: boolean
  readonly folder?: string | undefined
}): MailTransport | undefined {
  const { smtpUrl, allowsPlain = false } = options
  if (smtpUrl !== undefined) return smtpTransport(smtpUrl, { allowsPlain })
  return options.folder === undefined ? undefined : folderTransport(options.folder)
}
