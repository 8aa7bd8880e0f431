/** The fake payment processor behind the real client, without sockets: every request may meet a fault. */
import { FakePayments, type FakeRequest, signedEvent } from '../embedded/fake-payments/processor.ts'
import type { FakeEvent } from '../embedded/fake-payments/state.ts'
import type { Payments } from '../integrations/payments/configuration.ts'
import { openStripe, readEvent } from '../integrations/payments/stripe.ts'
import type { Clock } from '../kit/sys/clock.ts'

/** `lost`: nothing arrives. `unanswered`: it is done, and nobody hears of it. `busy`, `conflict`: it is not done.
 *  `broken`: it is not done, and the answer is given again to the same key; `broken_after`: it is done. */
export type Fault = 'lost' | 'unanswered' | 'busy' | 'conflict' | 'broken' | 'broken_after'

export interface TestPayments {
  readonly fake: FakePayments
  readonly payments: Payments
  /** Decides of each request from now on. */
  fault(of: (request: FakeRequest) => Fault | undefined): void
  /** Events that were not taken yet, as they are sent. */
  takeEvents(): readonly { readonly event: FakeEvent; readonly body: string; readonly signature: string }[]
}

const API_KEY = 'sk_fake'
const WEBHOOK_SECRET = 'whsec_fake'
const URL_OF_FAKE = 'http://127.0.0.1:9'

const errorBody = (type: string, code: string) => ({ error: { type, code, message: code } })
const BROKEN = { status: 500, body: errorBody('api_error', 'broken') }

export function openTestPayments(clock: Clock): TestPayments {
  const fake = new FakePayments({ clock, apiKey: API_KEY, url: URL_OF_FAKE })
  let faultOf: (request: FakeRequest) => Fault | undefined = () => undefined

  function answer(request: FakeRequest) {
    const fault = faultOf(request)
    if (fault === 'lost') throw new TypeError('the request was lost')
    if (fault === 'busy') return { status: 429, body: errorBody('invalid_request_error', 'rate_limit') }
    if (fault === 'conflict') return { status: 409, body: errorBody('idempotency_error', 'idempotency_key_in_use') }
    if (fault === 'broken') {
      fake.keepAnswer(request, BROKEN)
      return BROKEN
    }
    const given = fake.handle(request)
    if (fault === 'broken_after') {
      fake.keepAnswer(request, BROKEN)
      return BROKEN
    }
    if (fault === 'unanswered') throw new TypeError('the answer was lost')
    return given
  }

  const processor = openStripe({
    url: new URL(URL_OF_FAKE),
    apiKey: API_KEY,
    fetch: async (input, init) => {
      const { pathname, search } = new URL(String(input))
      const headers = new Headers(init?.headers)
      const { status, body } = answer({
        method: init?.method ?? 'GET',
        path: `${pathname}${search}`,
        body: typeof init?.body === 'string' ? init.body : '',
        authorization: headers.get('authorization') ?? undefined,
        idempotencyKey: headers.get('idempotency-key') ?? undefined,
      })
      return new Response(JSON.stringify(body), { status, headers: { 'content-type': 'application/json' } })
    },
  })
  return {
    fake,
    payments: {
      processor,
      publishableKey: 'pk_fake',
      readEvent: (body, signature, now) => readEvent(body, signature, WEBHOOK_SECRET, now),
    },
    fault: (of) => void (faultOf = of),
    takeEvents: () =>
      fake.state.events.splice(0).map((event) => ({ event, ...signedEvent(event, WEBHOOK_SECRET, clock.now()) })),
  }
}
