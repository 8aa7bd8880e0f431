/** Sign-up: creates an account, finds the email with the link, and confirms the address. */
import { readdir, readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import type { Clock } from '../kit/sys/clock.ts'
import { workingDirectory } from '../kit/sys/process.ts'
import type { Terminal } from '../kit/sys/terminal.ts'
import { createApi } from './api.ts'
import { EXIT, Failure, usageFailure } from './exit.ts'
import type { Environment } from './profiles.ts'
import { progressOn } from './progress.ts'

export interface SignUpOptions {
  readonly environment: Environment
  readonly terminal: Terminal
  readonly clock: Clock
  readonly signal: AbortSignal
  readonly userAgent: string
  readonly url: string
  readonly name: string | undefined
  readonly email: string | undefined
  /** Folder with the service's emails; searched for when absent. */
  readonly mails: string | undefined
}

const MAIL_MILLISECONDS_MAXIMUM = 30_000
const LOOK_MILLISECONDS = 200
const MAILS_MAXIMUM = 100
/** Of a service that was started in the folder in which the command runs. */
const ENDPOINTS_FILE = '.svccloud/endpoints.json'
const Endpoints = z.object({ api_url: z.string(), mail_directory: z.string() })

/** Returns the message for the user. Throws a Failure for missing values when it cannot prompt. */
export async function signUp(options: SignUpOptions): Promise<string> {
  const { environment, terminal, url, userAgent } = options
  const password = environment['SVCCLOUD_PASSWORD']
  if (!terminal.isInputTerminal && (options.email === undefined || password === undefined))
    throw usageFailure('no terminal for prompts: give --email, and the password in SVCCLOUD_PASSWORD')
  const email = (options.email ?? (await terminal.ask('Email: '))).trim()
  const name = options.name ?? (terminal.isInputTerminal ? await terminal.ask('Your name: ') : email)
  const body = { name, email, password: password ?? (await terminal.ask('New password: ', true)) }
  const api = createApi({ url, token: undefined, userAgent })
  await api.send({ method: 'POST', path: '/v1/auth/signup', body })
  terminal.writeError(`Signed up. An email with a link was sent to ${email}.\n`)
  const link = await findLink(options, email)
  if (link === undefined) return `Confirm the address when it arrives: svccloud confirm-email LINK --url ${url}`
  await confirmEmail(options, link)
  return `The address is confirmed. Next: svccloud login --url ${url} --email ${email}`
}

/** Confirms the address of the link; the token alone works too. */
export async function confirmEmail(
  { url, userAgent }: Pick<SignUpOptions, 'url' | 'userAgent'>,
  link: string,
): Promise<void> {
  const token = /#token=([^\s&]+)/.exec(link)?.[1] ?? link.trim()
  const body = { token: decodeURIComponent(token) }
  const api = createApi({ url, token: undefined, userAgent })
  await api.send({ method: 'POST', path: '/v1/auth/email-verification/confirm', body })
}

/** From the emails of a service on this machine, else from the user; undefined when neither has it. */
async function findLink(options: SignUpOptions, email: string): Promise<string | undefined> {
  const { terminal, clock, signal } = options
  const folder = options.mails ?? (await mailFolder(options.url))
  if (folder === undefined)
    return terminal.isInputTerminal ? (await terminal.ask('Its link: ')).trim() || undefined : undefined
  const progress = progressOn(terminal)
  const deadline = clock.monotonicMilliseconds() + MAIL_MILLISECONDS_MAXIMUM
  try {
    for (;;) {
      const mail = await newestMail(folder, email)
      if (mail !== undefined) {
        progress.end()
        terminal.writeError(`It is in ${mail.file}\n`)
        return mail.link
      }
      if (signal.aborted || clock.monotonicMilliseconds() > deadline)
        throw new Failure(
          EXIT.refused,
          `no email to ${email} has arrived in ${folder}; give another folder with --mails`,
        )
      progress.show(`waiting for the email in ${folder}`)
      await clock.sleep(LOOK_MILLISECONDS, signal)
    }
  } finally {
    progress.end()
  }
}

/** The email folder of the service at this address, if it was started in this folder. */
async function mailFolder(url: string): Promise<string | undefined> {
  const text = await readFile(join(workingDirectory(), ENDPOINTS_FILE), 'utf8').catch(() => undefined)
  if (text === undefined) return undefined
  const { data } = Endpoints.safeParse(JSON.parse(text))
  return data !== undefined && new URL(data.api_url).origin === new URL(url).origin ? data.mail_directory : undefined
}

async function newestMail(
  folder: string,
  email: string,
): Promise<{ readonly file: string; readonly link: string } | undefined> {
  const names = await readdir(folder).catch((error: Error) => {
    throw usageFailure(`${folder} cannot be read: ${error.message}`)
  })
  const files = await Promise.all(
    names
      .filter((name) => name.endsWith('.eml'))
      .map(async (name) => ({ file: join(folder, name), at: (await stat(join(folder, name))).mtimeMs })),
  )
  for (const { file } of files.sort((one, other) => other.at - one.at).slice(0, MAILS_MAXIMUM)) {
    const text = await readFile(file, 'utf8')
    const link = /https?:\S*verify-email\S*#token=\S+/.exec(text)?.[0]
    const [, to = ''] = /^To: (.*)$/m.exec(text) ?? []
    if (link !== undefined && to.trim().toLowerCase() === email.toLowerCase()) return { file, link }
  }
  return undefined
}
