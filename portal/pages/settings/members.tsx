/** Members of the account and invitations. */
import { UserPlus } from 'lucide-react'
import { type ReactNode, useState } from 'react'
import { readAgain } from '../../api/cache.ts'
import { call } from '../../api/client.ts'
import type { ItemOf } from '../../api/operations.ts'
import { useMay } from '../../api/session.ts'
import { type Question, useQuestion } from '../../nouns/ask.tsx'
import { Time, wordOf } from '../../nouns/value.tsx'
import { t } from '../../texts/index.ts'
import { Button } from '../../ui/button.tsx'
import { Dialog } from '../../ui/dialog.tsx'
import { type Option, SelectField, TextField } from '../../ui/field.tsx'
import { Between, Stack } from '../../ui/layout.tsx'
import { ProblemView } from '../../ui/problem.tsx'
import { notify } from '../../ui/toast.tsx'
import { useSubmission } from '../submission.ts'
import { Rows } from './rows.tsx'

const ROLES = ['admin', 'member', 'viewer'] as const

export function Members(): ReactNode {
  const may = useMay()
  const [isInviting, setInviting] = useState(false)
  const texts = t().members
  const canManage = may('create_invitation')
  const [ask, dialog] = useQuestion(['list_members'])
  return (
    <Stack gap="loose">
      <Between>
        <p className="soft">{texts.note}</p>
        {canManage ? (
          <Button kind="primary" icon={<UserPlus aria-hidden="true" />} onPress={() => setInviting(true)}>
            {texts.invite}
          </Button>
        ) : null}
      </Between>
      <Rows<'list_members'>
        list="list_members"
        label={t().account.members}
        idOf={({ user_id: id }) => id}
        nameOf={({ email }) => email}
        none={texts.none}
        columns={[
          { id: 'email', name: t().sign.email, cell: ({ email }) => <span dir="auto">{email}</span> },
          {
            id: 'role',
            name: texts.role,
            cell: (each) => <Role member={each} canManage={canManage} ask={ask} />,
          },
          {
            id: 'factor',
            name: t().factor.title,
            cell: (each) => (each.second_factor_enabled ? t().ui.yes : t().ui.no),
          },
          { id: 'joined', name: texts.joined, cell: ({ joined_at: at }) => <Time instant={at} /> },
        ]}
        {...(canManage
          ? {
              remove: {
                name: t().ui.remove,
                why: ({ role }) => (role === 'owner' ? texts.owner : undefined),
                run: ({ user_id: id }) => call('remove_member', { path: { user_id: id } }),
              },
            }
          : {})}
      />
      {dialog}
      {canManage ? <Invitations /> : null}
      {isInviting ? <Invite close={() => setInviting(false)} /> : null}
    </Stack>
  )
}

interface RoleProps {
  readonly member: ItemOf<'list_members'>
  readonly canManage: boolean
  readonly ask: (question: Question) => void
}

/** A button that changes it, for those who may. The owner keeps theirs. */
function Role({ member: { user_id: id, email, role }, canManage, ask }: RoleProps): ReactNode {
  const texts = t().members
  if (!canManage || role === 'owner') return texts.roles[role]
  return (
    <Button
      kind="quiet"
      onPress={() =>
        ask({
          operation: 'update_member',
          path: { user_id: id },
          title: t().choices.confirm(texts.changeRole, email),
          button: texts.changeRole,
          fields: [{ name: 'role', label: () => texts.role, useOptions: optionsOfRoles }],
          initial: { role },
        })
      }
    >
      {texts.roles[role]}
    </Button>
  )
}

const optionsOfRoles = (): readonly Option[] =>
  ROLES.map((id) => ({ id, name: t().members.roles[id], note: t().members.roleNotes[id] }))

function Invitations(): ReactNode {
  const [ask, dialog] = useQuestion(['list_invitations'])
  return (
    <Stack>
      <h2>{t().members.invitations}</h2>
      <Rows
        list="list_invitations"
        label={t().members.invitations}
        idOf={({ id }) => id}
        nameOf={({ email }) => email}
        none={t().members.noInvitations}
        columns={[
          { id: 'email', name: t().sign.email, cell: ({ email }) => <span dir="auto">{email}</span> },
          { id: 'role', name: t().members.role, cell: ({ role }) => t().members.roles[role] },
          { id: 'state', name: t().fields.state, cell: ({ state }) => wordOf(state) },
          { id: 'expires', name: t().fields.expires_at, cell: ({ expires_at: at }) => <Time instant={at} /> },
          {
            id: 'resend',
            name: t().members.resend,
            cell: ({ id, email, state }) => (
              <Button
                kind="quiet"
                why={state === 'pending' || state === 'expired' ? undefined : wordOf(state)}
                onPress={() =>
                  ask({
                    operation: 'resend_invitation',
                    path: { id },
                    title: t().choices.confirm(t().members.resend, email),
                    button: t().members.resend,
                  })
                }
              >
                {t().members.resend}
              </Button>
            ),
          },
        ]}
        remove={{
          name: t().members.revoke,
          why: ({ state }) => (state === 'pending' ? undefined : wordOf(state)),
          run: ({ id }) => call('revoke_invitation', { path: { id } }),
        }}
      />
      {dialog}
    </Stack>
  )
}

function Invite({ close }: { readonly close: () => void }): ReactNode {
  const [email, setEmail] = useState('')
  const [role, setRole] = useState<(typeof ROLES)[number]>('member')
  const { isBusy, refusal, onSubmit } = useSubmission(async () => {
    const body = { email, role }
    await call('create_invitation', { body })
    await readAgain('list_invitations')
    notify(t().members.invited(email))
    close()
  })
  return (
    <Dialog title={t().members.invite} onClose={close}>
      <form className="form" onSubmit={onSubmit} noValidate>
        <TextField
          label={t().sign.email}
          type="email"
          value={email}
          onChange={setEmail}
          wrong={refusal?.fields['email']}
          autoFocus
        />
        <SelectField
          label={t().members.role}
          options={optionsOfRoles()}
          value={role}
          onChange={(next) => setRole(ROLES.find((each) => each === next) ?? 'member')}
        />
        {refusal === undefined ? null : <ProblemView refusal={refusal} />}
        <div className="dialog-end">
          <Button onPress={close}>{t().ui.cancel}</Button>
          <Button kind="primary" type="submit" isBusy={isBusy}>
            {t().members.invite}
          </Button>
        </div>
      </form>
    </Dialog>
  )
}
