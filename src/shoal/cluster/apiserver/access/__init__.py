"""Who asks, and whether they may: certificates, tokens, ServiceAccounts, impersonation, RBAC, and the review kinds."""
