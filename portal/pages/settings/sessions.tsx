/** Where the signed-in person is signed in. */
import type { ReactNode } from 'react'
import { call } from '../../api/client.ts'
import { Time } from '../../nouns/value.tsx'
import { t } from '../../texts/index.ts'
import { settingsTexts } from '../../texts/settings.ts'
import { Stack } from '../../ui/layout.tsx'
import { Tag } from '../../ui/state.tsx'
import { Rows } from './rows.tsx'

export function Sessions(): ReactNode {
  const texts = settingsTexts().sessions
  return (
    <Stack>
      <p className="soft">{texts.note}</p>
      <Rows
        list="list_sessions"
        label={t().account.sessions}
        idOf={({ id }) => id}
        nameOf={({ user_agent: agent }) => browserOf(agent)}
        none={texts.none}
        columns={[
          {
            id: 'browser',
            name: texts.browser,
            cell: ({ user_agent: agent }) => <span dir="auto">{browserOf(agent)}</span>,
          },
          {
            id: 'here',
            name: texts.session,
            cell: ({ is_current: isCurrent }) => (isCurrent ? <Tag>{texts.here}</Tag> : ''),
          },
          { id: 'address', name: t().fields.address, cell: ({ source_ip: address }) => address },
          { id: 'seen', name: texts.seen, cell: ({ last_seen_at: at }) => <Time instant={at} /> },
          { id: 'created', name: texts.began, cell: ({ created_at: at }) => <Time instant={at} /> },
        ]}
        remove={{
          name: texts.end,
          why: ({ is_current: isCurrent }) => (isCurrent ? texts.here : undefined),
          run: ({ id }) => call('end_session', { path: { id } }),
        }}
      />
    </Stack>
  )
}

/** The short name that people know. */
const browserOf = (agent: string): string =>
  /(Firefox|Edg|Chrome|Safari|curl|svccloud)\/[\d.]+/.exec(agent)?.[0]?.replace('Edg/', 'Edge/') ?? agent.slice(0, 40)
