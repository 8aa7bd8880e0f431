import type { Cloud, Person } from '../../cloud.ts'
import type { Samples } from '../../samples.ts'

/** What a customer does to save a card: at the processor, whose events nobody has heard yet. Answers its id. */
export async function saveCard({ payments: { fake } }: Cloud, person: Person, isGood = true): Promise<string> {
  const begun = await person.send('POST', '/v1/account/billing/setup-session')
  const id = String(begun.body['url']).split('/').at(-1) ?? ''
  fake.completeSession(id, isGood)
  return fake.state.methods.at(-1)?.id ?? ''
}

export const SAMPLES: Samples = {
  'payment-methods': ({ cloud, owner }) => saveCard(cloud, owner),
}
