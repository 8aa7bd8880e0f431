/** The changes of a webhook. */
import { defined } from '../domain/defined.ts'
import { requireLive, requireUsable } from '../domain/webhook/rules.ts'
import { addWebhook, changeWebhook, hideWebhook, removeWebhook, showWebhook } from '../db/webhook/index.ts'
import { PrintableName } from '../resources/kit/shapes.ts'
import * as routes from '../resources/webhook/index.ts'
import { Webhook } from '../resources/webhook/index.ts'
import { changesOf, fromBody } from './kit/define.ts'
import { requireReadable } from './kit/readable.ts'

export const webhookChanges = changesOf(Webhook, {
  name: 'webhook',
  title: 'webhook',
  finalizedWhen: 'nothing is sent to it',
  factsOf: ({ isDeleting }) => ({ isDeleting }),
  reads: [],
  readable({ name, url, events }) {
    requireReadable('name', PrintableName, name)
    requireUsable({ url, events })
  },
  create: {
    name: 'create',
    allow: ({ spec }) => requireUsable(spec),
    claim: (tx, { accountId, id, spec }, { clock }) =>
      addWebhook(tx, { accountId, webhookId: id }, { ...spec, createdAt: clock.now() }),
    release: async (tx, { accountId, id }) => void (await removeWebhook(tx, { accountId, webhookId: id })),
    detail: ({ name, url }) => ({ name, url }),
    by: { route: routes.createWebhook },
  },
  changes: {
    configure: {
      sets: ['name', 'url', 'events', 'enabled'],
      action: 'update',
      allow({ id, facts: { isDeleting }, spec }) {
        requireLive(isDeleting, id)
        requireUsable(spec)
      },
      claim: (tx, { accountId, id, spec }) => changeWebhook(tx, { accountId, webhookId: id }, spec),
      async release(tx, { accountId, id }, stored) {
        if (stored !== undefined) await changeWebhook(tx, { accountId, webhookId: id }, stored.spec)
      },
      by: fromBody(routes.updateWebhook, (body) => defined(body)),
    },
  },
  remove: {
    name: 'delete',
    /** Its controller removes the row once the object is being deleted. */
    claim: (tx, { accountId, id }, { clock }) => hideWebhook(tx, { accountId, webhookId: id }, clock.now()),
    release: (tx, { accountId, id }) => showWebhook(tx, { accountId, webhookId: id }),
    detail: ({ name, url }) => ({ name, url }),
    by: { route: routes.deleteWebhook },
  },
})
