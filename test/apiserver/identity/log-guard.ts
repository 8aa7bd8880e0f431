/** Looks for secrets in everything that is logged while tests run: what went over the wire under a secret's name, as a
 *  cookie or in a mail must be in no line. */
import { describeError, type LogFields, type Logger } from '../../../kit/sys/log.ts'

const SECRET_FIELDS = new Set([
  'password',
  'current_password',
  'token',
  'secret',
  'otpauth_uri',
  'challenge',
  'code',
  'recovery_code',
  'recovery_codes',
  'invitation',
  'csrf_token',
  'handoff_url',
])
/** Shorter texts, six-digit codes among them, are found in other numbers and words by chance. */
const SECRET_CHARACTERS_MINIMUM = 8

export interface LogGuard {
  readonly log: Logger
  /** Remembers a secret. */
  learn(secret: string): void
  /** Remembers every secret of a JSON body. */
  learnFrom(body: unknown): void
  /** Throws when a line that was logged since the last check holds a secret. */
  check(): void
  /** How many lines were searched. */
  searched(): number
}

export function openLogGuard(): LogGuard {
  const secrets = new Set<string>()
  let lines: string[] = []
  let searched = 0
  const write = (message: string, fields?: LogFields) =>
    void lines.push(
      JSON.stringify({
        message,
        ...fields,
        ...(fields?.error === undefined ? {} : { error: describeError(fields.error) }),
      }),
    )
  const log: Logger = { debug: write, info: write, warn: write, error: write, with: () => log }

  function learn(secret: string): void {
    if (secret.length >= SECRET_CHARACTERS_MINIMUM) secrets.add(secret)
  }
  function learnFrom(body: unknown): void {
    if (typeof body !== 'object' || body === null) return
    for (const [name, value] of Object.entries(body)) {
      if (SECRET_FIELDS.has(name)) for (const secret of [value].flat()) if (typeof secret === 'string') learn(secret)
      if (typeof value === 'object') learnFrom(value)
    }
  }
  return {
    log,
    learn,
    learnFrom,
    check() {
      const [checked, text] = [lines, lines.join('\n')]
      lines = []
      searched += checked.length
      for (const secret of secrets) {
        if (text.includes(secret))
          throw new Error(`a secret was logged: ${checked.find((line) => line.includes(secret))}`)
      }
      if (text.includes('$argon2id$')) throw new Error('a password hash was logged')
    },
    searched: () => searched,
  }
}
