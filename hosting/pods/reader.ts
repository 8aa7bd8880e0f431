/** The host's side of a reader in a pod. */
import { printable } from '../../domain/printable.ts'
import { readText, TooLong } from '../../kit/http/bounded.ts'
import { READER_NAME, type ReaderCredentials } from '../core/credentials.ts'
import { type Client, openClient } from '../core/https-client.ts'
import { NotReady } from '../core/not-ready.ts'
import { Asking, QUESTIONS_MAXIMUM } from '../core/reading/asking.ts'
import { ANSWER_BYTES_MAXIMUM, type Question } from '../core/reading/messages.ts'
import { TASKS, type TaskName } from '../core/reading/tasks.ts'
import type { Clock } from '../../kit/sys/clock.ts'

const SNAPSHOT_SILENCE_MILLISECONDS = 30_000
const REASON_BYTES_MAXIMUM = 1_000

export interface PodReaderOptions {
  readonly credentials: Pick<ReaderCredentials, 'authority' | 'client'>
  /** `https://HOST:PORT` of the trusted reader; undefined while there is none. */
  readonly address: () => string | undefined
  /** Called when it sent an invalid answer, or none in time: it must be replaced. */
  readonly replace: () => void
  readonly clock: Clock
}

export class PodReader {
  readonly #options: PodReaderOptions
  readonly #client: Client
  readonly #asking: Asking

  constructor(options: PodReaderOptions) {
    const { credentials, clock, replace } = options
    this.#options = options
    this.#client = openClient(credentials.authority, credentials.client, {
      clock,
      serverName: READER_NAME,
      requestsMaximum: QUESTIONS_MAXIMUM,
    })
    this.#asking = new Asking({ clock, end: replace, send: (question) => void this.#send(this.#address(), question) })
  }

  get ask(): Asking['ask'] {
    return this.#asking.ask.bind(this.#asking)
  }

  /** Streams a snapshot of etcd at that address. The receiver must verify it. */
  async *snapshotParts(etcd: string): AsyncGenerator<Uint8Array, void> {
    const response = await this.#client.open(`${this.#address()}/snapshot`, {
      method: 'POST',
      body: { etcd },
      timeoutMilliseconds: SNAPSHOT_SILENCE_MILLISECONDS,
    })
    if (response.statusCode !== 200) {
      const why = await readText(response, REASON_BYTES_MAXIMUM).catch(() => 'at length')
      throw new Error(`what reads etcd answered ${response.statusCode}: ${printable(why)}`)
    }
    yield* response as AsyncIterable<Uint8Array> // without an encoding
  }

  close(): void {
    this.#client.close()
  }

  #address(): string {
    const address = this.#options.address()
    if (address === undefined) throw new NotReady('what reads its API is being started')
    return address
  }

  /** If the reader is unreachable or exits, only this question fails; the reader stays trusted. */
  async #send(address: string, question: Question): Promise<void> {
    // The caller takes the name from the table.
    const { milliseconds } = TASKS[question.task as TaskName]
    const answer = await this.#client
      .send(`${address}/tasks`, {
        method: 'POST',
        body: question,
        timeoutMilliseconds: 2 * milliseconds,
        wholeMilliseconds: 2 * milliseconds,
        answerBytesMaximum: ANSWER_BYTES_MAXIMUM,
      })
      .catch((error: unknown) => (error instanceof TooLong ? undefined : this.#fail(question, error)))
    // Other questions to a reader that is no longer trusted have failed already.
    if (answer === 'failed' || this.#options.address() !== address) return
    try {
      if (answer?.status !== 200) throw new Error('it does not answer questions')
      this.#asking.hear(answer.text, question.id)
    } catch {
      this.#asking.end('it said what cannot be meant')
    }
  }

  #fail({ id }: Question, error: unknown): 'failed' {
    this.#asking.fail(id, error instanceof Error ? error : new Error(String(error)))
    return 'failed'
  }
}
