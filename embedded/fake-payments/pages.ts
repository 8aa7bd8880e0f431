/** The pages for customers of the FAKE payment processor: to save a card, and to pay an invoice. Plain forms, so that
 *  `curl -d card=good URL` does the same as a person. */
import { parseForm, fieldText } from './form.ts'
import { type FakePayments, totalOf } from './processor.ts'

export interface PageAnswer {
  readonly status: number
  readonly headers: Readonly<Record<string, string>>
  readonly body: string
}

const html = (status: number, text: string): PageAnswer => ({
  status,
  headers: { 'content-type': 'text/html; charset=utf-8', 'cache-control': 'no-store' },
  body: `<!doctype html><title>Fake payment processor</title><h1>Fake payment processor: no money moves</h1>${text}\n`,
})

const CARDS =
  '<form method="post"><button name="card" value="good">A card that can be charged</button>' +
  '<button name="card" value="bad">A card that cannot</button></form>'

/** Undefined when the path is not a page. */
export function answerPage(fake: FakePayments, method: string, path: string, body: string): PageAnswer | undefined {
  const [, root, noun, id = ''] = path.split('/')
  if (root !== 'fake') return undefined
  const isGood = fieldText(parseForm(body), 'card') !== 'bad'
  if (noun === 'setup') return answerSetup(fake, method, id, isGood)
  if (noun === 'invoices') return answerInvoice(fake, method, id, isGood)
  return html(404, '<p>There is no such page.</p>')
}

function answerSetup(fake: FakePayments, method: string, id: string, isGood: boolean): PageAnswer {
  const session = fake.state.sessions.find((each) => each.id === id)
  if (session === undefined || session.isComplete) return html(404, '<p>This page was used, or never was.</p>')
  if (method !== 'POST') return html(200, `<p>Save a payment method.</p>${CARDS}`)
  fake.completeSession(id, isGood)
  return { status: 303, headers: { location: session.successUrl }, body: '' }
}

function answerInvoice(fake: FakePayments, method: string, id: string, isGood: boolean): PageAnswer {
  const invoice = fake.state.invoices.find((each) => each.id === id)
  if (invoice === undefined || invoice.status === 'draft') return html(404, '<p>There is no such invoice.</p>')
  if (method === 'POST' && invoice.status === 'open') fake.pay(id, isGood)
  const total = `<p>Invoice ${id}: ${totalOf(invoice)} cents, ${invoice.status}.</p>`
  return html(200, invoice.status === 'open' ? `${total}${CARDS}` : total)
}
