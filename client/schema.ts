/** Generated from the OpenAPI document by `npm run generate`; never edited by hand. */

export interface paths {
  "/v1/auth/signup": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["sign_up"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/login": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["log_in"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/logout": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["log_out"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/me": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_current_user"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/email-verification": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["request_email_verification"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/email-verification/confirm": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["confirm_email_verification"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/password-reset": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["request_password_reset"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/password-reset/confirm": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["confirm_password_reset"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/password": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put: operations["change_password"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/sessions": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_sessions"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/sessions/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post?: never
    delete: operations["end_session"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/login/mfa": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["verify_login_second_factor"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/login/mfa/enroll": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["start_login_second_factor_setup"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/login/mfa/enroll/confirm": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["finish_login_second_factor_setup"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/mfa": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_account_mfa"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/mfa/policy": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put: operations["set_account_mfa_policy"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/mfa/recovery-codes": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["replace_account_recovery_codes"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/mfa/totp": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["start_account_totp_setup"]
    delete: operations["disable_account_totp"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/mfa/totp/confirm": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["finish_account_totp_setup"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/oidc": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_identity_provider_status"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/oidc/login": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["start_identity_provider_login"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/oidc/signup": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["start_identity_provider_signup"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/oidc/callback": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["finish_identity_provider_login"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/oidc/callback/{provider}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["finish_identity_provider_login_at_provider"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/identities/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post?: never
    delete: operations["unlink_sign_in_identity"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/members": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_members"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/members/{user_id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post?: never
    delete: operations["remove_member"]
    options?: never
    head?: never
    patch: operations["update_member"]
    trace?: never
  }
  "/v1/account/invitations": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_invitations"]
    put?: never
    post: operations["create_invitation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/invitations/{id}/resend": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["resend_invitation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/invitations/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post?: never
    delete: operations["revoke_invitation"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/invitation": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["look_up_invitation"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/accept-invitation": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["accept_invitation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/organisation": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_account_organisation"]
    put?: never
    post: operations["link_account_organisation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/accounts": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_accounts"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/accounts/active": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["switch_account"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/coupons": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["redeem_coupon"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/credits": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_credits"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/support-consents": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_support_consents"]
    put?: never
    post: operations["grant_support_consent"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/support-consents/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post?: never
    delete: operations["revoke_support_consent"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/support-handoff": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["redeem_support_handoff"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/auth/end-impersonation": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["end_impersonation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/tokens": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_api_tokens"]
    put?: never
    post: operations["create_api_token"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/tokens/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post?: never
    delete: operations["revoke_api_token"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/account/quotas": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_account_quotas"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/audit": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_audit_entries"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/audit/export": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["export_audit_entries"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/audit/integrity": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_audit_integrity"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/regions": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_regions"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/zones": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_zones"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/plans": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_plans"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/templates": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_templates"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/templates/{name}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_template"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_servers"]
    put?: never
    post: operations["create_server"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_server"]
    put?: never
    post?: never
    delete: operations["delete_server"]
    options?: never
    head?: never
    patch: operations["update_server"]
    trace?: never
  }
  "/v1/servers/{id}/start": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["start_server"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers/{id}/stop": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["stop_server"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers/{id}/restart": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["restart_server"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers/{id}/ha-policy": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put: operations["set_server_ha_policy"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers/{id}/migration-policy": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put: operations["set_server_migration_policy"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers/{id}/metadata": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_server_metadata_setting"]
    put: operations["set_server_metadata_setting"]
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers/{id}/console/input": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["send_server_console_input"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/servers/{id}/console/stream": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["stream_server_console"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/init-scripts": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_init_scripts"]
    put?: never
    post: operations["create_init_script"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/init-scripts/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_init_script"]
    put?: never
    post?: never
    delete: operations["delete_init_script"]
    options?: never
    head?: never
    patch: operations["update_init_script"]
    trace?: never
  }
  "/v1/ssh-keys": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_ssh_keys"]
    put?: never
    post: operations["create_ssh_key"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/ssh-keys/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_ssh_key"]
    put?: never
    post?: never
    delete: operations["delete_ssh_key"]
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/operations": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["list_operations"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/operations/{id}": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get: operations["get_operation"]
    put?: never
    post?: never
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/v1/operations/{id}/cancel": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["cancel_operation"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
  "/mcp": {
    parameters: { query?: never; header?: never; path?: never; cookie?: never }
    get?: never
    put?: never
    post: operations["send_mcp_message"]
    delete?: never
    options?: never
    head?: never
    patch?: never
    trace?: never
  }
}

export interface components {
  schemas: {
    CreateServer: {
      zone: string
      /** Unique in the account and zone. */
      hostname: string
      plan: string
      template?: string
      title?: string
      labels?: { [name: string]: string }
      /** Public keys. */
      ssh_keys?: string[]
      /** Keys of the account; all of them when neither ssh_keys nor ssh_key_ids is given. */
      ssh_key_ids?: string[]
      user_data?: string
      /** Init script of the account to take as user data, as it is now; not together with user_data. */
      init_script_id?: string | null
      /** Size of the boot storage; at least and by default the plan's. */
      storage_gibibytes?: number
      ha_policy?: "restart" | "none"
      migration_policy?: "default" | "relaxed" | "strict"
      metadata_enabled?: boolean
      start?: boolean
      custom_image_id?: null
      server_group_id?: null
      public_ipv4?: false
      networks?: unknown[]
      firewall?: null
      backup_schedule?: null
    }
    MigrationPolicyBody: {
      migration_policy: "default" | "relaxed" | "strict"
    }
    MetadataSetting: {
      enabled: boolean
    }
    /** One JSON-RPC 2.0 message. */
    MCPMessage: {
      jsonrpc: "2.0"
      /** Absent on notifications. */
      id?: string | number
      method?: string
      params?: { [name: string]: unknown }
    }
    /** Why a request was refused (RFC 9457). */
    Problem: {
      type: "about:blank"
      title: string
      status: number
      /** Written for people, safe to show. */
      detail: string
      /** For programs; clients ignore values they do not know. */
      reason?: string
      /** What is wrong with which field. */
      errors?: {
        field: string
        detail: string
      }[]
      resource?: {
        type: string
        id: string
      }
      /** The operation that keeps the resource busy. */
      active_operation_id?: string
      quota?: {
        name: string
        limit: number
        used: number
        requested: number
      }
      /** Where there is room now. */
      alternatives?: {
        zone: string
        plan: string
      }[]
    }
    Quota: {
      name: string
      limit: number
      used: number
      scope: "account" | "zone"
    }
    Region: {
      name: string
      display_name: string
      country: string
      zones: string[]
    }
    Zone: {
      name: string
      display_name: string
      region: string
      status: "available" | "full" | "maintenance" | "closed"
      capabilities: ("separate_edges" | "replicated_storage" | "live_migration" | "ha_restart" | "rack_spread" | "object_storage" | "databases" | "kubernetes" | "dev_clusters" | "playgrounds" | "public_ipv4" | "public_ipv6")[]
      object_storage_backend: ("rgw" | "svc-s3-single") | null
      unavailable_plans: string[]
    }
    Plan: {
      name: string
      family: "starter" | "premium" | "cloud_native"
      cores: number
      memory_mebibytes: number
      storage_gibibytes: number
      price_monthly_cents: number
      price_hourly_millicents: number
      cpu_pool: string | null
    }
    Template: {
      id: string
      name: string
      title: string
      os_family: string
      os_version: string
      architecture: "x86_64"
      default_user: string
      min_storage_gibibytes: number
      min_memory_mebibytes: number
      zones: string[]
      deprecated_at: string | null
      unavailable_at: string | null
      created_at: string
    }
    Server: {
      managed_by: string | null
      id: string
      zone: string
      region?: string
      hostname: string
      title: string
      plan: string
      cores: number
      memory_mebibytes: number
      storage_gibibytes: number
      template: string
      state: "creating" | "starting" | "started" | "stopping" | "stopped" | "deleting" | "error"
      desired_power: "running" | "stopped"
      state_detail: string
      public_ipv4: string | null
      public_ipv6: string | null
      public_ipv6_prefix: string | null
      public_ipv6_is_private: boolean
      ipv6_renumber_available: boolean
      ssh_command: string | null
      mac_address: string
      labels: { [name: string]: string }
      server_group_id: string | null
      ha_policy?: "restart" | "none"
      migration_policy?: "default" | "relaxed" | "strict"
      cpu_pool?: string | null
      active_operation: components["schemas"]["Operation"] | null
      is_protected: boolean
      metadata_enabled: boolean
      init_script_id: string | null
      boot_storage_id: string | null
      storage_ids: string[]
      interface_count: number
      firewall_enabled: boolean
      ha_status: "available" | "unavailable"
      ha_status_reason: string | null
      maintenance: {
        planned_at: string
        reason: string
        action: "live" | "cold"
      } | null
      created_at: string
      started_at: string | null
      hourly_price_millicents: number
    }
    Operation: {
      id: string
      kind: "server.create" | "server.metadata" | "server.start" | "server.stop" | "server.restart" | "server.delete" | "server.force_release" | "server.change_plan" | "server.rebuild" | "server.renumber_ipv6" | "server.attach_network" | "server.detach_network" | "server.firewall" | "server.move" | "server.migrate" | "server.recover" | "server.settle_migration" | "storage.create" | "storage.attach" | "storage.detach" | "storage.resize" | "storage.delete" | "storage.backup" | "storage.move" | "storage.rebalance_policy" | "storage.drain_host" | "backup.restore" | "backup.delete" | "backup.verify" | "template.create" | "template.copy" | "template.delete" | "snapshot.create" | "snapshot.delete" | "router.sync" | "floating_ip.sync" | "network.sync" | "public_pool.sync" | "edge.sync" | "edge.delete" | "node.cordon" | "node.uncordon" | "node.drain" | "node.fence" | "node.maintenance" | "node.agent_upgrade" | "node.provision" | "load_balancer.create" | "load_balancer.delete" | "database.create" | "database.delete" | "database.restore" | "object_storage.migrate" | "kubernetes_cluster.create" | "kubernetes_cluster.delete" | "kubernetes_cluster.upgrade" | "kubernetes_cluster.snapshot" | "kubernetes_cluster.restore" | "kubernetes_cluster.platform_register" | "kubernetes_cluster.platform_deregister" | "node_pool.sync" | "node_pool.delete" | "kubernetes_host.bootstrap" | "control_plane.expand" | "control_plane.shrink"
      server_id: string | null
      storage_id: string | null
      backup_id: string | null
      template_id: string | null
      router_id: string | null
      floating_ip_id: string | null
      node_id?: string
      load_balancer_id?: string | null
      database_id?: string | null
      edge_id?: string | null
      snapshot_id?: string | null
      kubernetes_cluster_id?: string | null
      node_pool_id?: string | null
      kubernetes_host_id?: string
      status: "pending" | "running" | "succeeded" | "failed" | "cancelled"
      step: string
      step_index: number
      step_count: number
      error: string
      created_at: string
      deadline_at: string
      started_at: string | null
      finished_at: string | null
      actor: string
      progress?: { [name: string]: unknown }
      events?: {
        at: string
        kind: string
        message: string
        data: { [name: string]: unknown }
      }[]
    }
    OperationEnvelope: {
      operation: components["schemas"]["Operation"]
    }
    HAPolicyResult: {
      ha_status: "available" | "unavailable"
      ha_status_reason: string | null
      ha_policy: "restart" | "none"
    }
    InitScript: {
      id: string
      name: string
      content: string
      created_at: string
      updated_at: string
    }
    SSHKey: {
      id: string
      name: string
      public_key: string
      fingerprint: string
      created_at: string
    }
    MCPResponse: {
      jsonrpc: "2.0"
      id: string | number | null
      result?: { [name: string]: unknown }
      error?: {
        code: number
        message: string
        data?: { [name: string]: unknown }
      }
    }
    MigrationPolicyBodyOutput: {
      migration_policy: "default" | "relaxed" | "strict"
    }
    MetadataSettingOutput: {
      enabled: boolean
    }
  }
}

export interface operations {
  /** Create an account and its owner. Mails a link that verifies the address. The answer is the same whether the address is new or has a user already. */
  sign_up: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        name: string
        email: string
        password: string
        account_name?: string
        coupon_code?: string
      }
    } }
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          detail: string
          email: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Sign in with email and password. Sets the session cookies, or answers a challenge where a second factor is due. */
  log_in: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        email: string
        password: string
        end_other_sessions?: boolean
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          user: {
            id: string
            email: string
            name?: string
            account_id: string
            role: "owner" | "admin" | "member" | "viewer"
          }
          csrf_token: string
          expires_at: string
          ended_sessions?: number
        } | {
          mfa_required: true
          mfa_step: "verify" | "enroll"
          challenge: string
          challenge_expires_at: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** End the session. Without a live session it only clears the cookies. With an identity provider configured it answers where its session ends. */
  log_out: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          logout_url: string
        }
      } }
      204: { headers: { [name: string]: unknown }; content?: never }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Who is signed in. Who is signed in. */
  get_current_user: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          email_verified: boolean
          email_verification_required: boolean
          user: {
            id: string
            email: string
            name?: string
            account_id: string
            role: "owner" | "admin" | "member" | "viewer"
          }
          csrf_token: string
          impersonation: {
            staff_email: string
            staff_name: string
            reason: string
            mode: "read_only" | "elevated"
            expires_at: string
            account_id: string
          } | null
          account_id: string
          permissions: ("read" | "operate" | "members.manage" | "tokens.manage" | "billing.read" | "billing.manage" | "self")[]
          identities: {
            id: string
            provider: string
            provider_name: string
            subject_hint: string
            linked_at: string
            last_login_at: string | null
          }[]
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Mail the verification link again. Mail the verification link again. */
  request_email_verification: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          detail: string
          email: string
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Verify an address with the mailed token. Opens no session. */
  confirm_email_verification: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        token: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          email: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Mail a link to choose a new password. The answer is always the same. */
  request_password_reset: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        email: string
      }
    } }
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          detail: string
          email: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Choose a new password with the mailed token. Ends every session and verifies the address. The second factor still applies at the next sign-in. */
  confirm_password_reset: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        token: string
        password: string
      }
    } }
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Change your password. Needs the current one, and a proof of the second factor where one is set up. Ends your other sessions. */
  change_password: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        current_password: string
        password: string
        code?: string
        recovery_code?: string
      }
    } }
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List your sessions. Where you are signed in; what was used last comes first. */
  list_sessions: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: {
            id: string
            created_at: string
            last_seen_at: string
            expires_at: string
            user_agent: string
            source_ip: string
            is_current: boolean
          }[]
          next_cursor: null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** End one of your sessions. End one of your sessions. */
  end_session: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Finish signing in with a second factor. Finish signing in with a second factor. */
  verify_login_second_factor: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        challenge: string
        code?: string
        recovery_code?: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          user: {
            id: string
            email: string
            name?: string
            account_id: string
            role: "owner" | "admin" | "member" | "viewer"
          }
          csrf_token: string
          expires_at: string
          ended_sessions?: number
          recovery_codes?: string[]
          recovery_codes_remaining?: number
          return_to?: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Set up a second factor while signing in. For accounts that require one. The secret is in this answer only, and inactive until its first code. */
  start_login_second_factor_setup: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        challenge: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          secret: string
          otpauth_uri: string
          expires_at: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Confirm the second factor and finish signing in. Confirm the second factor and finish signing in. */
  finish_login_second_factor_setup: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        challenge: string
        code?: string
        recovery_code?: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          user: {
            id: string
            email: string
            name?: string
            account_id: string
            role: "owner" | "admin" | "member" | "viewer"
          }
          csrf_token: string
          expires_at: string
          ended_sessions?: number
          recovery_codes?: string[]
          recovery_codes_remaining?: number
          return_to?: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Your second factor. Your second factor. */
  get_account_mfa: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          totp_enabled: boolean
          totp_pending: boolean
          enabled_at: string | null
          recovery_codes_remaining: number
          required_by_account: boolean
          available: boolean
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Require a second factor of every member. Only the owner, and only with a second factor of their own. Open sessions keep running. */
  set_account_mfa_policy: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        required: boolean
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          totp_enabled: boolean
          totp_pending: boolean
          enabled_at: string | null
          recovery_codes_remaining: number
          required_by_account: boolean
          available: boolean
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Replace the recovery codes. Replace the recovery codes. */
  replace_account_recovery_codes: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        code?: string
        recovery_code?: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          recovery_codes: string[]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Start setting up an authenticator. Start setting up an authenticator. */
  start_account_totp_setup: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          secret: string
          otpauth_uri: string
          expires_at: string
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Remove the authenticator and all recovery codes. Remove the authenticator and all recovery codes. */
  disable_account_totp: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        code?: string
        recovery_code?: string
      }
    } }
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Confirm the authenticator with its first code. Confirm the authenticator with its first code. */
  finish_account_totp_setup: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        code: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          recovery_codes: string[]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Which identity providers sign people in. Which identity providers sign people in. */
  get_identity_provider_status: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          configured: boolean
          display_name?: string
          icon?: string
          silent_sign_in?: boolean
          connections: {
            name: string
            display_name: string
            icon: string
          }[]
          providers: {
            name: string
            display_name: string
            icon?: string
            silent_sign_in: boolean
            connections: {
              name: string
              display_name: string
              icon: string
            }[]
          }[]
        }
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Sign in with an identity provider. Sign in with an identity provider. */
  start_identity_provider_login: {
    parameters: {
      query?: {
        return_to?: string
        prompt?: "none" | "login"
        coupon?: string
        provider?: string
        connection?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      302: { headers: { [name: string]: unknown }; content?: never }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Sign up with an identity provider. Sign up with an identity provider. */
  start_identity_provider_signup: {
    parameters: {
      query?: {
        return_to?: string
        prompt?: "none" | "login"
        coupon?: string
        provider?: string
        connection?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      302: { headers: { [name: string]: unknown }; content?: never }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Where a provider sends the browser back. Where a provider sends the browser back. */
  finish_identity_provider_login: {
    parameters: {
      query?: {
        provider?: string
        state?: string
        code?: string
        error?: string
        error_description?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      302: { headers: { [name: string]: unknown }; content?: never }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Where one provider sends the browser back. Where one provider sends the browser back. */
  finish_identity_provider_login_at_provider: {
    parameters: {
      query?: {
        provider?: string
        state?: string
        code?: string
        error?: string
        error_description?: string
      }
      header?: never
      path: {
        provider: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      302: { headers: { [name: string]: unknown }; content?: never }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Unlink a sign-in identity. Unlink a sign-in identity. */
  unlink_sign_in_identity: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List members. List members. */
  list_members: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: {
            user_id: string
            email: string
            name: string | null
            role: "owner" | "admin" | "member" | "viewer"
            second_factor_enabled: boolean
            identity_providers: string[]
            joined_at: string
            last_active_at: string | null
            is_self: boolean
          }[]
          next_cursor: null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Change the role of a member. Not of the owner, and not of yourself. */
  update_member: {
    parameters: {
      query?: never
      header?: never
      path: {
        user_id: string
      }
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        role: "admin" | "member" | "viewer"
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          member: {
            user_id: string
            email: string
            name: string | null
            role: "owner" | "admin" | "member" | "viewer"
            second_factor_enabled: boolean
            identity_providers: string[]
            joined_at: string
            last_active_at: string | null
            is_self: boolean
          }
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Remove a member, or leave. Ends their sessions and tokens for this account. Everyone but the owner may leave. */
  remove_member: {
    parameters: {
      query?: never
      header?: never
      path: {
        user_id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List invitations. Pending ones, and the rest for 30 days. */
  list_invitations: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: {
            id: string
            email: string
            role: "admin" | "member" | "viewer"
            state: "pending" | "accepted" | "revoked" | "expired"
            invited_by_email: string
            created_at: string
            expires_at: string
          }[]
          next_cursor: null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Invite somebody by mail. Invite somebody by mail. */
  create_invitation: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        email: string
        role: "admin" | "member" | "viewer"
      }
    } }
    responses: {
      201: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          invitation: {
            id: string
            email: string
            role: "admin" | "member" | "viewer"
            state: "pending" | "accepted" | "revoked" | "expired"
            invited_by_email: string
            created_at: string
            expires_at: string
          }
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      422: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Mail a new link. The link that was mailed before no longer works. */
  resend_invitation: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          invitation: {
            id: string
            email: string
            role: "admin" | "member" | "viewer"
            state: "pending" | "accepted" | "revoked" | "expired"
            invited_by_email: string
            created_at: string
            expires_at: string
          }
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Revoke an invitation. Revoke an invitation. */
  revoke_invitation: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** What an invitation is for. What an invitation is for. */
  look_up_invitation: {
    parameters: {
      query: {
        invitation: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          email: string
          role: "admin" | "member" | "viewer"
          account_name: string
          expires_at: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Join the account that invited you. An address without a user gets one with this password; an address with a user proves itself by its password. Where a second factor is due the answer is a challenge, as at sign-in. */
  accept_invitation: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        invitation: string
        password: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          mfa_required: true
          mfa_step: "verify" | "enroll"
          challenge: string
          challenge_expires_at: string
        }
      } }
      201: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          user: {
            id: string
            email: string
            name?: string
            account_id: string
            role: "owner" | "admin" | "member" | "viewer"
          }
          csrf_token: string
          expires_at: string
          ended_sessions?: number
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** The organisation of the account. The organisation of the account. */
  get_account_organisation: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          link: {
            organisation: {
              id: string
              name: string
            }
            linked_at: string
            confirmed_at: string
            has_owner_seat: boolean
            is_owner_retained: boolean
          } | null
          members: {
            user_id: string
            email: string
            platform_role: string
            role: "owner" | "admin" | "member" | "viewer"
            is_owner: boolean
            is_stale: boolean
            confirmed_at: string
          }[]
          candidates: {
            organisation: {
              id: string
              name: string
            }
            platform_role: string
            role: "admin" | "member" | "viewer"
            is_current: boolean
            is_stale: boolean
            confirmed_at: string
            account_id?: string
          }[]
          connected: boolean
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Link the account to an organisation. Only the owner, within an hour of signing in with the platform account. Pending invitations are revoked. */
  link_account_organisation: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        organisation_id: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          link: {
            organisation: {
              id: string
              name: string
            }
            linked_at: string
            confirmed_at: string
            has_owner_seat: boolean
            is_owner_retained: boolean
          }
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Accounts that you can act for. Accounts that you can act for. */
  list_accounts: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: {
            id: string
            name: string
            role: "owner" | "admin" | "member" | "viewer"
            is_own_account: boolean
            is_active: boolean
            organisation: {
              id: string
              name: string
              platform_role: string
              is_stale: boolean
              is_owner_retained: boolean
              confirmed_at: string | null
            } | null
          }[]
          active_account_id: string
          organisations: {
            organisation: {
              id: string
              name: string
            }
            platform_role: string
            role: "admin" | "member" | "viewer"
            is_current: boolean
            is_stale: boolean
            confirmed_at: string
            account_id?: string
          }[]
          connected: boolean
          create_organisation_url: string | null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Act for another account. Every session of yours does from the next request. */
  switch_account: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        account_id?: string
        organisation_id?: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          account: {
            id: string
            name: string
            role: "owner" | "admin" | "member" | "viewer"
            is_own_account: boolean
            is_active: boolean
            organisation: {
              id: string
              name: string
              platform_role: string
              is_stale: boolean
              is_owner_retained: boolean
              confirmed_at: string | null
            } | null
          }
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Redeem a coupon. Redeem a coupon. */
  redeem_coupon: {
    parameters: {
      query?: never
      header?: {
        /** Makes the request safe to send again: for a day the same key and body answer what they answered first, with Idempotent-Replayed: true. */
        "Idempotency-Key"?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        code: string
      }
    } }
    responses: {
      201: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          credit: {
            id: string
            label: string
            source: "sign_up" | "coupon" | "staff"
            amount_cents: number
            remaining_cents: number
            created_at: string
            expires_at: string | null
            state: "live" | "spent" | "expired" | "revoked"
          }
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      422: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List credits. With the balance of the live ones and the outcome of the last ten coupons that were tried. */
  list_credits: {
    parameters: {
      query?: {
        cursor?: string
        limit?: number
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: {
            id: string
            label: string
            source: "sign_up" | "coupon" | "staff"
            amount_cents: number
            remaining_cents: number
            created_at: string
            expires_at: string | null
            state: "live" | "spent" | "expired" | "revoked"
          }[]
          next_cursor: string | null
          balance_cents: number
          coupon_outcomes: {
            at: string
            code_hint: string
            outcome: "applied" | "unknown" | "inactive" | "not_yet_valid" | "expired" | "exhausted" | "already_redeemed" | "unavailable"
          }[]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List support consents. Newest first, of the last 90 days. */
  list_support_consents: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: {
            id: string
            mode: "read_only" | "elevated"
            granted_by_email: string
            reference: string | null
            created_at: string
            expires_at: string
            revoked_at: string | null
            sessions: number
          }[]
          next_cursor: null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Let support into the account. Let support into the account. */
  grant_support_consent: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        mode: "read_only" | "elevated"
        expires_in_hours?: number
        reference?: string | null
      }
    } }
    responses: {
      201: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          support_consent: {
            id: string
            mode: "read_only" | "elevated"
            granted_by_email: string
            reference: string | null
            created_at: string
            expires_at: string
            revoked_at: string | null
            sessions: number
          }
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Revoke a support consent. Ends running support sessions of that mode at once. */
  revoke_support_consent: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Enter an account with a handoff code. The code comes from the admin console, works once and for two minutes. */
  redeem_support_handoff: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        code: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          redirect: string
          user: {
            id: string
            email: string
            name?: string
            account_id: string
            role: "owner" | "admin" | "member" | "viewer"
          }
          impersonation: {
            staff_email: string
            staff_name: string
            reason: string
            mode: "read_only" | "elevated"
            expires_at: string
            account_id: string
          }
          expires_at: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Leave the account. Leave the account. */
  end_impersonation: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          redirect: string
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List API tokens. Newest first. Members see their own; owner and admins see all. */
  list_api_tokens: {
    parameters: {
      query?: {
        cursor?: string
        limit?: number
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: {
            id: string
            name: string
            scope: ("read" | "read_write") | (("read" | "operate" | "members.manage" | "tokens.manage" | "billing.read" | "billing.manage" | "self")[])
            token_hint: string
            user_id: string
            user_email: string
            created_at: string
            expires_at: string | null
            last_used_at: string | null
            last_used_ip: string | null
            allowed_cidrs: string[]
            status: "active" | "expired" | "revoked"
          }[]
          next_cursor: string | null
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Create an API token. The token is in this answer and nowhere else. It acts as its creator, limited by the scope. Without expires_at it lives 90 days; null never expires. */
  create_api_token: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        name: string
        scope: ("read" | "read_write") | (("read" | "operate" | "members.manage" | "tokens.manage" | "billing.read" | "billing.manage" | "self")[])
        expires_at?: string | null
        allowed_cidrs?: (string | string)[]
      }
    } }
    responses: {
      201: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          api_token: {
            id: string
            name: string
            scope: ("read" | "read_write") | (("read" | "operate" | "members.manage" | "tokens.manage" | "billing.read" | "billing.manage" | "self")[])
            token_hint: string
            user_id: string
            user_email: string
            created_at: string
            expires_at: string | null
            last_used_at: string | null
            last_used_ip: string | null
            allowed_cidrs: string[]
            status: "active" | "expired" | "revoked"
          }
          token: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      422: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Revoke an API token. No replica accepts it a second later. */
  revoke_api_token: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List quotas with what is used of them. List quotas with what is used of them. */
  list_account_quotas: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["Quota"][]
          next_cursor: null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List audit entries. Newest first, 100 on a page. */
  list_audit_entries: {
    parameters: {
      query?: {
        cursor?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: {
            id: string
            sequence: number
            at: string
            actor_email: string
            actor_kind: "user" | "token" | "staff" | "operator" | "system"
            user_id: string | null
            staff_id: string | null
            token_id: string | null
            token_name: string | null
            action: string
            resource_type: string
            resource_id: string
            detail: { [name: string]: string }
            outcome: "success" | "denied" | "failed"
            source_ip: string
            user_agent: string
            request_id: string
            changes: {
              field: string
              before: unknown
              after: unknown
            }[]
            previous_hash: string
            entry_hash: string
          }[]
          next_cursor: string | null
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Export audit entries. One entry per line in chain order, oldest first. The header X-Next-After carries the sequence to pass as `after` while more remain. Starting an export is itself audited. */
  export_audit_entries: {
    parameters: {
      query?: {
        after?: number
        limit?: number
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/x-ndjson": {
          id: string
          sequence: number
          at: string
          actor_email: string
          actor_kind: "user" | "token" | "staff" | "operator" | "system"
          user_id: string | null
          staff_id: string | null
          token_id: string | null
          token_name: string | null
          action: string
          resource_type: string
          resource_id: string
          detail: { [name: string]: string }
          outcome: "success" | "denied" | "failed"
          source_ip: string
          user_agent: string
          request_id: string
          changes: {
            field: string
            before: unknown
            after: unknown
          }[]
          previous_hash: string
          entry_hash: string
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Whether the audit log is whole. Every chain is verified hourly. */
  get_audit_integrity: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          status: "verified" | "unverified" | "broken"
          head_sequence: number
          verified_through_sequence: number
          verified_at: string | null
          pruned_through_sequence: number
          break: {
            sequence: number
            id: string | null
            reason: string
          } | null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List regions. List regions. */
  list_regions: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["Region"][]
          next_cursor: null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List zones with what they offer. List zones with what they offer. */
  list_zones: {
    parameters: {
      query?: {
        region?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["Zone"][]
          next_cursor: null
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List server plans with prices. List server plans with prices. */
  list_plans: {
    parameters: {
      query?: never
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["Plan"][]
          next_cursor: null
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List operating system templates. List operating system templates. */
  list_templates: {
    parameters: {
      query?: {
        zone?: string
        os_family?: string
        include_deprecated?: "true" | "false"
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["Template"][]
          next_cursor: null
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Read a template. Read a template. */
  get_template: {
    parameters: {
      query?: never
      header?: never
      path: {
        name: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          template: components["schemas"]["Template"]
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List servers. Newest first. A server must carry every label that is named. */
  list_servers: {
    parameters: {
      query?: {
        cursor?: string
        limit?: number
        /** key=value; may be given more than once. */
        label?: string[]
        hostname?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["Server"][]
          next_cursor: string | null
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Create a server. Create a server. */
  create_server: {
    parameters: {
      query?: never
      header?: {
        /** Makes the request safe to send again: for a day the same key and body answer what they answered first, with Idempotent-Replayed: true. */
        "Idempotency-Key"?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": components["schemas"]["CreateServer"]
    } }
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          server: components["schemas"]["Server"]
          operation: components["schemas"]["Operation"]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      402: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      422: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Read a server. Read a server. */
  get_server: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          server: components["schemas"]["Server"]
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Change title, labels or protection. A JSON merge patch; labels replace all labels. With If-Match the change is made only to that version. */
  update_server: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: { content: {
      "application/json": {
        title?: string
        labels?: { [name: string]: string }
        is_protected?: boolean
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          server: components["schemas"]["Server"]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Delete a server with its boot storage. Allowed while the server is still being created: its creation is cancelled. */
  delete_server: {
    parameters: {
      query?: {
        delete_storages?: "true" | "false"
      }
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["OperationEnvelope"]
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Start a stopped server. Start a stopped server. */
  start_server: {
    parameters: {
      query?: never
      header?: {
        /** Makes the request safe to send again: for a day the same key and body answer what they answered first, with Idempotent-Replayed: true. */
        "Idempotency-Key"?: string
      }
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["OperationEnvelope"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Stop a server. Stop a server. */
  stop_server: {
    parameters: {
      query?: never
      header?: {
        /** Makes the request safe to send again: for a day the same key and body answer what they answered first, with Idempotent-Replayed: true. */
        "Idempotency-Key"?: string
      }
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: { content: {
      "application/json": {
        /** soft asks the guest to shut down, hard cuts the power. */
        stop_type?: "soft" | "hard"
        timeout_seconds?: number
        /** What happens when the guest has not shut down in time. */
        timeout_action?: "fail" | "hard"
      }
    } }
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["OperationEnvelope"]
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Stop a server and start it again. Stop a server and start it again. */
  restart_server: {
    parameters: {
      query?: never
      header?: {
        /** Makes the request safe to send again: for a day the same key and body answer what they answered first, with Idempotent-Replayed: true. */
        "Idempotency-Key"?: string
      }
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: { content: {
      "application/json": {
        /** soft asks the guest to shut down, hard cuts the power. */
        stop_type?: "soft" | "hard"
        timeout_seconds?: number
        /** What happens when the guest has not shut down in time. */
        timeout_action?: "fail" | "hard"
      }
    } }
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["OperationEnvelope"]
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Choose what happens when a node is lost. restart starts a running server on another node once its failed node is fenced, none leaves it stopped. Always accepted; ha_status says whether the zone can act on it. */
  set_server_ha_policy: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        ha_policy: "restart" | "none"
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["HAPolicyResult"]
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Choose how much a live migration may disturb the guest. default allows short pauses and throttles the guest where needed, relaxed prefers a finished move, strict gives up rather than disturb the guest. */
  set_server_migration_policy: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody: { content: {
      "application/json": components["schemas"]["MigrationPolicyBody"]
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["MigrationPolicyBodyOutput"]
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Read whether the metadata service answers a server. Read whether the metadata service answers a server. */
  get_server_metadata_setting: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["MetadataSettingOutput"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Switch the metadata service of a server on or off. Also while the server runs; what its guest does is not disturbed. */
  set_server_metadata_setting: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody: { content: {
      "application/json": components["schemas"]["MetadataSetting"]
    } }
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          enabled: boolean
          operation: components["schemas"]["Operation"]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Type into the serial console. At most 50 requests a second for each server. The first input of a session_id is audited. */
  send_server_console_input: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        session_id: string
        data: string
      }
    } }
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      503: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Follow the serial console. Server-sent events: `tail` (base64 of the last 64 KiB), `status` (ConsoleStatus), then `output` (base64) for each chunk; a keepalive comment every 15 seconds. Ends after 30 minutes. */
  stream_server_console: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "text/event-stream": string
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List init scripts. Newest first. */
  list_init_scripts: {
    parameters: {
      query?: {
        cursor?: string
        limit?: number
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["InitScript"][]
          next_cursor: string | null
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Add an init script. Add an init script. */
  create_init_script: {
    parameters: {
      query?: never
      header?: {
        /** Makes the request safe to send again: for a day the same key and body answer what they answered first, with Idempotent-Replayed: true. */
        "Idempotency-Key"?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        /** Unique in the account. */
        name: string
        /** What cloud-init runs at first boot: a script, or a document that starts with #cloud-config. At most 32768 bytes. */
        content: string
      }
    } }
    responses: {
      201: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          init_script: components["schemas"]["InitScript"]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      422: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Read an init script. Read an init script. */
  get_init_script: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          init_script: components["schemas"]["InitScript"]
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Change an init script. Servers that were made with it keep what they booted with. With If-Match the change is made only to that version. */
  update_init_script: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: { content: {
      "application/json": {
        /** Unique in the account. */
        name?: string
        /** What cloud-init runs at first boot: a script, or a document that starts with #cloud-config. At most 32768 bytes. */
        content?: string
      }
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          init_script: components["schemas"]["InitScript"]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Delete an init script. Servers that were made with it keep what they booted with. */
  delete_init_script: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List SSH keys. Newest first. */
  list_ssh_keys: {
    parameters: {
      query?: {
        cursor?: string
        limit?: number
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["SSHKey"][]
          next_cursor: string | null
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Add an SSH key. Accepts ed25519, ecdsa, rsa of at least 2048 bits and security-key (sk) public keys. */
  create_ssh_key: {
    parameters: {
      query?: never
      header?: {
        /** Makes the request safe to send again: for a day the same key and body answer what they answered first, with Idempotent-Replayed: true. */
        "Idempotency-Key"?: string
      }
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": {
        name: string
        public_key: string
      }
    } }
    responses: {
      201: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          ssh_key: components["schemas"]["SSHKey"]
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      422: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Read an SSH key. Read an SSH key. */
  get_ssh_key: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          ssh_key: components["schemas"]["SSHKey"]
        }
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Delete an SSH key. Servers that were made with it keep it. */
  delete_ssh_key: {
    parameters: {
      query?: never
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      204: { headers: { [name: string]: unknown }; content?: never }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** List operations. Newest first, without their events. */
  list_operations: {
    parameters: {
      query?: {
        cursor?: string
        limit?: number
        /** Only these; may be given more than once. */
        id?: string[]
        status?: "pending" | "running" | "succeeded" | "failed" | "cancelled"
        /** Only those of one resource: its type and id, as in server:<id>. */
        resource?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": {
          items: components["schemas"]["Operation"][]
          next_cursor: string | null
        }
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Read an operation with its events. Read an operation with its events. */
  get_operation: {
    parameters: {
      query?: {
        /** Seconds to wait for a change before answering; answers at once when the operation has ended. */
        wait?: number
      }
      header?: never
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["OperationEnvelope"]
      } }
      400: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Cancel an operation. Only long copies and moves can be cancelled, and only before they have come to their point of no return. */
  cancel_operation: {
    parameters: {
      query?: never
      header?: {
        /** Makes the request safe to send again: for a day the same key and body answer what they answered first, with Idempotent-Replayed: true. */
        "Idempotency-Key"?: string
      }
      path: {
        id: string
      }
      cookie?: never
    }
    requestBody?: never
    responses: {
      202: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["OperationEnvelope"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      404: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      409: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
  /** Send a message of the Model Context Protocol. Stateless, JSON answers only. Every tool is an operation of this API and is decided there, with the scope of the token and the role of its user. */
  send_mcp_message: {
    parameters: {
      query?: {
        /** Only the tools of these, separated by commas: the first parts of paths, as in servers,ssh-keys. */
        toolsets?: string
        /** Only tools that change nothing and reveal no credential. */
        readonly?: string
        /** search: three tools, to find operations and to call them. */
        mode?: string
        /** output: with the schemas of answers. */
        schemas?: string
      }
      header?: never
      path?: never
      cookie?: never
    }
    requestBody: { content: {
      "application/json": components["schemas"]["MCPMessage"]
    } }
    responses: {
      200: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["MCPResponse"]
      } }
      202: { headers: { [name: string]: unknown }; content?: never }
      400: { headers: { [name: string]: unknown }; content: {
        "application/json": components["schemas"]["MCPResponse"]
      } }
      401: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      403: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      413: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      415: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      429: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      500: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
      default: { headers: { [name: string]: unknown }; content: {
        "application/problem+json": components["schemas"]["Problem"]
      } }
    }
  }
}
